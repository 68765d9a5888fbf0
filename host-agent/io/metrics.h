// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <prometheus/registry.h>

#include <cstdint>
#include <string>
#include <vector>

namespace te::agent {

/// The agent's figures as they are now: totals since its start, and three states.
struct AgentFigures {
  std::uint64_t readings = 0;
  std::uint64_t reading_failures = 0;
  std::uint64_t kernel_events = 0;
  std::uint64_t kernel_events_lost = 0;
  std::uint64_t kernel_flows_lost = 0;
  std::uint64_t unsteered_packets = 0;
  std::uint64_t flows_left_out = 0;
  std::uint64_t steering_actions = 0;
  std::uint64_t steering_failures = 0;
  std::uint64_t steering_idle_dropped = 0;
  std::uint64_t steering_reused_dropped = 0;
  std::uint64_t sessions = 0;
  std::uint64_t session_failures = 0;
  std::uint64_t certificate_renewals = 0;
  std::uint64_t certificate_failures = 0;
  std::uint64_t events_lost = 0;
  std::uint64_t probes_sent = 0;
  std::uint64_t probes_lost = 0;
  std::uint64_t probes_unreachable = 0;
  std::uint64_t probe_answers_unknown = 0;
  std::uint64_t link_updates = 0;
  std::uint64_t link_messages_lost = 0;
  std::uint64_t links_left_out = 0;
  std::uint64_t carrier_losses = 0;
  double flows = 0;
  double steered_flows = 0;
  double connected = 0;
  double links = 0;
  double links_with_carrier = 0;
};

/// The agent's figures in Prometheus' text format. The list of names and meanings is in metrics.cc.
class Metrics {
 public:
  Metrics();
  void update(const AgentFigures& figures);
  [[nodiscard]] std::string text() const;

 private:
  prometheus::Registry registry_;
  std::vector<prometheus::Counter*> counters_;
  std::vector<prometheus::Gauge*> gauges_;
};

}  // namespace te::agent
