// SPDX-License-Identifier: Apache-2.0
#include "te-controller/engine/attendance.h"

#include <algorithm>

namespace te {

void Attendance::leaves(const std::string& node, std::int64_t now_ns) {
  const FleetNode* state = fleet_->node(node);
  if (state == nullptr || !state->connected) return;
  if (now_ns - state->changed_ns >= kSteadyNs) left_ns_[node] = now_ns;
}

std::string Attendance::missing(std::int64_t now_ns) const {
  for (const auto& [name, node] : fleet_->nodes()) {
    if (node.hello.role() == "switch") continue;  // sends no flows
    const auto left = left_ns_.find(name);
    const std::int64_t since_ns = left == left_ns_.end() ? started_ns_ : left->second;
    if (now_ns - since_ns >= kReturnNs) continue;
    const bool back = node.connected && node.reported_ns != 0 && now_ns - node.changed_ns >= kIntervals * interval_ns_;
    if (!back) return name;
  }
  return {};
}

}  // namespace te
