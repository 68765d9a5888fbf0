// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <linux/capability.h>

#include <array>
#include <boost/asio/awaitable.hpp>
#include <boost/asio/io_context.hpp>
#include <boost/asio/posix/stream_descriptor.hpp>
#include <boost/asio/steady_timer.hpp>
#include <cstdint>
#include <limits>
#include <map>
#include <memory>
#include <string>

#include "host-agent/app/host.h"
#include "host-agent/core/agent_config.h"
#include "host-agent/io/credentials.h"
#include "host-agent/io/link_watcher.h"
#include "host-agent/io/metrics.h"
#include "host-agent/io/metrics_server.h"
#include "host-agent/io/net_namespaces.h"
#include "host-agent/io/prober.h"
#include "host-agent/io/uplink.h"

namespace te::agent {

/// The running agent: decides when the Host is read and steered and what the controller hears of it. Without a
/// controller it goes on steering as it last did.
class Agent {
 public:
  /// Capabilities that it goes on needing once it is open: to attach to interfaces that appear, to ask the kernel for
  /// TCX then, and to see queue pairs.
  static constexpr std::array kCapabilities{CAP_NET_ADMIN, CAP_BPF};

  /// An Error when the configuration cannot work: no kernel programs, metrics address taken.
  static Result<std::unique_ptr<Agent>> open(boost::asio::io_context& io, AgentConfig config, Credentials credentials);

  /// Starts all loops; they run on the io_context's one thread.
  void start();
  /// Ends all loops. Programs and steering stay in the kernel.
  void stop();
  Credentials& credentials() { return credentials_; }

 private:
  Agent(boost::asio::io_context& io, AgentConfig config, Credentials credentials);
  Result<void> open_parts();
  void open_probers();
  /// Lets go of namespaces that only the agent may be holding: their NICs could not go back to the host.
  void leave_ended_namespaces();
  [[nodiscard]] Prober::Counts prober_counts() const;

  boost::asio::awaitable<void> reading_loop();
  boost::asio::awaitable<void> kernel_event_loop();
  void reading(FlowTable::Window window, std::int64_t now_ns);
  void ask_early_reading();

  v1::Hello hello();
  void session_began(const v1::HelloReply& reply);
  void take(const v1::ControllerMessage& message);
  void take(const v1::ProbeRequest& request);
  void take(const v1::SteeringSet& set);
  void report(FlowTable::Window window);
  void report_flows(FlowTable::Window window);
  void report_steering();
  void report_sources();
  void update_metrics();

  boost::asio::io_context& io_;
  AgentConfig config_;
  Credentials credentials_;
  NetNamespaces namespaces_;
  std::unique_ptr<Host> host_;
  Metrics metrics_;
  Uplink uplink_;
  LinkWatcher links_;
  MetricsServer metrics_server_;
  std::map<std::string, std::unique_ptr<Prober>> probers_;  // by network namespace
  boost::asio::posix::stream_descriptor kernel_events_;
  boost::asio::steady_timer event_pause_;
  boost::asio::steady_timer reading_timer_;
  std::uint64_t instance_;
  std::int64_t interval_ns_;
  std::int64_t last_reading_ns_ = 0;
  std::int64_t reading_cost_ns_ = 0;
  std::int64_t early_reading_ns_ = std::numeric_limits<std::int64_t>::max();
  bool owes_all_flows_ = false;  // the controller has no complete list of this session yet
  std::uint64_t sources_reported_ = 0;
  std::uint64_t steering_reported_ = std::numeric_limits<std::uint64_t>::max();
  bool stopped_ = false;
};

}  // namespace te::agent
