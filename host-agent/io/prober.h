// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <boost/asio/awaitable.hpp>
#include <boost/asio/io_context.hpp>
#include <boost/asio/posix/stream_descriptor.hpp>
#include <boost/asio/steady_timer.hpp>
#include <cstdint>
#include <functional>
#include <string>

#include "common/os/unique_fd.h"
#include "host-agent/core/probe_scheduler.h"

namespace te::agent {

/// Sends path probes from raw sockets and hears what switches answer by ICMP. Needs CAP_NET_RAW; probes carry
/// kTeProbeMark, which our tc program lets pass untouched (CAP_NET_ADMIN).
class Prober {
 public:
  struct Counts {
    std::uint64_t sent = 0;
    std::uint64_t lost = 0;
    std::uint64_t answered = 0;
    std::uint64_t unreachable = 0;      ///< answered that there is no way on
    std::uint64_t unknown_answers = 0;  ///< about RoCEv2 packets that are no probe of ours
  };

  /// `deliver` takes each part of a result.
  Prober(boost::asio::io_context& io, std::function<void(const ProbeReport&)> deliver);

  /// Opens the sockets, in the calling thread's network namespace, and starts to listen. An Error when IPv4 cannot be
  /// probed; IPv6 is off when the host has none.
  Result<void> open();
  /// Takes an order; what is wrong with it is delivered as its result.
  void start(ProbeOrder order);
  void cancel(std::uint64_t id) { scheduler_.cancel(id); }
  void cancel_all() { scheduler_.cancel_all(); }
  /// Ends it and closes its sockets.
  void stop();
  /// The same, and reports all orders at work as failed.
  void stop(const std::string& why);

  [[nodiscard]] const Counts& counts() const { return counts_; }

 private:
  boost::asio::awaitable<void> pace();
  boost::asio::awaitable<void> listen(boost::asio::posix::stream_descriptor& socket, bool v6);
  void hear(int socket, bool v6);
  void take(const Result<IcmpAnswer>& answer, const IpAddress& responder);
  void send_due();
  Result<void> send(const Probe& probe);
  void deliver_reports();

  boost::asio::io_context& io_;
  std::function<void(const ProbeReport&)> deliver_;
  ProbeScheduler scheduler_;
  UniqueFd send_v4_;
  UniqueFd send_v6_;
  boost::asio::posix::stream_descriptor hear_v4_;
  boost::asio::posix::stream_descriptor hear_v6_;
  boost::asio::steady_timer timer_;
  Counts counts_;
  bool stopped_ = false;
};

}  // namespace te::agent
