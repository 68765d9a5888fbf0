// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <optional>
#include <span>
#include <vector>

#include "host-agent/core/flow_table.h"
#include "host-agent/core/qp_table.h"
#include "te/v1/agent.pb.h"

namespace te::agent {

/// The two ends of the queue pair that a flow belongs to; absent: unknown or ambiguous.
struct PairedFlow {
  FlowKey key;
  std::optional<std::uint32_t> local_qpn;
  std::optional<std::uint32_t> remote_qpn;
};

/// Finds the queue pair of each flow. An ingress flow carries the local QPN. An egress flow carries only the remote
/// one, which is not unique on a host: queue pair (L, R) owns it when packets to L came from the same peer; without any
/// ingress to L, only when L is the only candidate and no other egress flow has R. Whatever stays ambiguous is unknown.
[[nodiscard]] std::vector<PairedFlow> pair_flows(std::span<const FlowRecord> flows, std::span<const QueuePair> qps);

/// How the flow's source port came to be, as far as its QPNs and flow label tell.
[[nodiscard]] v1::PortProvenance provenance_of(const FlowRecord& flow);

}  // namespace te::agent
