// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <array>
#include <boost/asio/awaitable.hpp>
#include <boost/asio/io_context.hpp>
#include <boost/asio/steady_timer.hpp>
#include <cstdint>
#include <memory>

#include "host-agent/core/agent_config.h"
#include "host-agent/core/source_board.h"
#include "host-agent/io/credentials.h"
#include "host-agent/io/link_watcher.h"
#include "host-agent/io/metrics.h"
#include "host-agent/io/metrics_server.h"
#include "host-agent/io/uplink.h"

namespace te::agent {

/// The agent in role switch: reports its node's links and does nothing else; it touches no packet and loads nothing
/// into the kernel.
class SwitchAgent {
 public:
  /// It needs none: anybody may hear of interfaces.
  static constexpr std::array<int, 0> kCapabilities{};

  /// An Error when links cannot be watched, or the metrics address is taken.
  static Result<std::unique_ptr<SwitchAgent>> open(boost::asio::io_context& io, AgentConfig config,
                                                   Credentials credentials);

  /// Starts all loops; they run on the io_context's one thread.
  void start();
  void stop();
  Credentials& credentials() { return credentials_; }

 private:
  SwitchAgent(boost::asio::io_context& io, AgentConfig config, Credentials credentials);

  boost::asio::awaitable<void> metrics_loop();
  v1::Hello hello() const;
  void refuse(const v1::ControllerMessage& message);
  void update_metrics();

  boost::asio::io_context& io_;
  AgentConfig config_;
  Credentials credentials_;
  SourceBoard sources_;
  Metrics metrics_;
  Uplink uplink_;
  NetNamespaces namespaces_;  // none but its own
  LinkWatcher links_;
  MetricsServer metrics_server_;
  boost::asio::steady_timer metrics_timer_;
  std::uint64_t instance_;
  bool stopped_ = false;
};

}  // namespace te::agent
