// SPDX-License-Identifier: Apache-2.0
#include "host-agent/core/qp_reuse.h"

#include <set>

namespace te::agent {

std::vector<FlowKey> QpReuse::check(std::span<const FlowRecord> flows, std::span<const QueuePair> table) {
  std::set<QpnPair> pairs;
  std::set<std::uint32_t> local_qpns;
  for (const QueuePair& qp : table) {
    pairs.emplace(qp.local_qpn, qp.remote_qpn);
    local_qpns.insert(qp.local_qpn);
  }
  std::map<FlowKey, QpnPair> still;
  std::vector<FlowKey> reused;
  for (const FlowRecord& flow : flows) {
    if (flow.steer_port == 0 || flow.direction != FlowDirection::kEgress) continue;
    const auto known = owners_.find(flow.key);
    if (known == owners_.end()) {
      if (flow.local_qpn && flow.remote_qpn) still.emplace(flow.key, QpnPair{*flow.local_qpn, *flow.remote_qpn});
    } else if (!pairs.contains(known->second) && local_qpns.contains(known->second.first)) {
      reused.push_back(flow.key);
    } else {
      still.insert(*known);
    }
  }
  owners_ = std::move(still);
  return reused;
}

}  // namespace te::agent
