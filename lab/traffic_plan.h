// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <string>
#include <utility>
#include <vector>

#include "common/base/result.h"
#include "common/yaml/yaml_reader.h"
#include "lab/endpoint/plan.h"
#include "lab/fabric.h"

namespace te::lab {

struct TrafficOptions {
  std::string pattern = "ring";  ///< see pattern_names()
  int qps = 2;                   ///< QP pairs of each connection on each NIC; 1..64
  double seconds = 0;            ///< 0: until a signal
  Verb verb = Verb::kWrite;
  std::uint32_t message_bytes = 65536;
  std::uint32_t window_packets = 16;  ///< of each QP
  std::uint32_t ack_every = 4;        ///< packets
  std::uint32_t timeout_ms = 250;     ///< before what is not acknowledged is sent again
  std::uint32_t retries = 7;          ///< timeouts in a row; one more and the QP is in error
};

/// One flow of messages: QP `source_qpn` of host `source` sends to QP `destination_qpn` of host `destination`.
struct FlowPlan {
  std::size_t source = 0;  ///< index of the host
  std::size_t destination = 0;
  std::size_t nic = 0;  ///< of both hosts
  int qp = 0;           ///< number within the connection's NIC
  std::uint32_t source_qpn = 0;
  std::uint32_t destination_qpn = 0;
  std::uint32_t source_psn = 0;
  std::uint32_t destination_psn = 0;
  std::uint32_t flow_label = 0;         ///< of the data; 0: port from the QPNs
  std::uint32_t answer_flow_label = 0;  ///< of the acknowledgements
};

[[nodiscard]] std::vector<std::string> pattern_names();
/// Connections (source, destination) of a pattern over `hosts` hosts. An Error for an unknown pattern or too few hosts.
Result<std::vector<std::pair<std::size_t, std::size_t>>> connections_of(const std::string& pattern, std::size_t hosts,
                                                                        std::uint32_t seed);
/// Every flow, with QPNs and PSNs from the lab's seed.
Result<std::vector<FlowPlan>> plan_flows(const Fabric& fabric, const TrafficOptions& options);
/// Sets flow labels from a YAML list of {source, destination, nic, qp, flow_label, answer_flow_label}.
Result<void> set_flow_labels(const Fabric& fabric, const YamlReader& root, std::vector<FlowPlan>& flows);
/// What each host's endpoint does.
[[nodiscard]] std::vector<EndpointPlan> plan_endpoints(const Fabric& fabric, const TrafficOptions& options,
                                                       const std::vector<FlowPlan>& flows,
                                                       const std::string& state_directory);
/// The flows as a JSON list, for programs that check the lab.
[[nodiscard]] std::string flows_json(const Fabric& fabric, const std::vector<FlowPlan>& flows);

}  // namespace te::lab
