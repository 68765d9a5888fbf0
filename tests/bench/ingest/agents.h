// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <boost/asio/awaitable.hpp>
#include <boost/asio/io_context.hpp>
#include <cstdint>
#include <memory>
#include <vector>

#include "common/net/framed_connection.h"
#include "tests/bench/ingest/traffic.h"
#include "tests/support/certificates.h"

namespace te {

/// Agents of every host of a BenchTraffic, each on a TLS connection of its own and with a certificate of its own. All
/// on the io_context's one thread.
class SimulatedAgents {
 public:
  enum class Talk {
    kIdle,   ///< each interval: no flow changed
    kUsual,  ///< each interval: each flow changed
  };
  struct Counters {
    std::uint64_t connected = 0;
    std::uint64_t records = 0;  ///< flow reports queued
    std::uint64_t bytes = 0;    ///< of the frames that carried them
    std::uint64_t late = 0;     ///< updates begun more than an interval late: we are too slow
    std::uint64_t refused = 0;  ///< updates not queued: the controller is too slow
    std::uint64_t lost = 0;     ///< sessions that ended
    std::uint64_t retries = 0;  ///< connections tried again
    std::uint64_t probes = 0;   ///< answered
  };

  /// All that it is given outlives it. `authority` issues the certificates.
  SimulatedAgents(boost::asio::io_context& io, const BenchTraffic& traffic, test::CertificateAuthority& authority,
                  std::uint16_t port, std::uint32_t interval_ms)
      : io_(&io), traffic_(&traffic), authority_(&authority), port_(port), interval_ms_(interval_ms) {}

  /// Connects them all, some at a time, and lets each report from then on until the io_context stops.
  void start();
  void set_talk(Talk talk) { talk_ = talk; }
  [[nodiscard]] const Counters& counters() const { return counters_; }
  /// Waiting in this process.
  [[nodiscard]] std::uint64_t queued_bytes() const;

 private:
  boost::asio::awaitable<void> connect_some();
  boost::asio::awaitable<std::shared_ptr<FramedConnection>> connect(std::uint32_t host);
  boost::asio::awaitable<void> listen(std::shared_ptr<FramedConnection> connection);
  boost::asio::awaitable<void> report(std::uint32_t host, std::shared_ptr<FramedConnection> connection);
  void send_update(v1::AgentMessage& message, FramedConnection& connection, std::uint32_t round);

  boost::asio::io_context* io_;
  const BenchTraffic* traffic_;
  test::CertificateAuthority* authority_;
  std::uint16_t port_;
  std::uint32_t interval_ms_;
  std::uint32_t next_host_ = 0;
  std::vector<std::shared_ptr<FramedConnection>> connections_;
  Talk talk_ = Talk::kUsual;
  Counters counters_;
};

}  // namespace te
