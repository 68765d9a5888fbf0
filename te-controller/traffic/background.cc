// SPDX-License-Identifier: Apache-2.0
#include "te-controller/traffic/background.h"

#include <algorithm>
#include <span>

#include "te-controller/traffic/describe.h"
#include "te-controller/traffic/placement.h"

namespace te::traffic {

std::vector<PlannedMove> background_off_closed_links(const Fabric& fabric, const PlanInput& input) {
  std::vector<PlannedMove> moves;
  std::vector<std::uint32_t> put_on(fabric.links().size());  // flows, by link
  const auto most_on = [&](PathIndex path) {
    std::uint32_t most = 0;
    for (const LinkId link : input.paths.links(path)) most = std::max(most, put_on[link]);
    return most;
  };
  for (std::size_t index = 0; index < input.flows.size(); ++index) {
    const PlanFlow& flow = input.flows[index];
    const bool known = flow.current_path != kUnknownPath;
    if (flow.elastic || !flow.immovable.empty() || (!known && !flow.must_leave)) continue;
    if (known && takes_flows(fabric, input.paths.links(flow.current_path))) continue;
    const Candidate* best = nullptr;
    for (const Candidate& one : std::span(input.candidates).subspan(flow.first_candidate, flow.candidate_count)) {
      if (!takes_flows(fabric, input.paths.links(one.path))) continue;
      if (best == nullptr || most_on(one.path) < most_on(best->path)) best = &one;
    }
    if (best == nullptr) continue;
    const auto to = input.paths.links(best->path);
    for (const LinkId link : to) ++put_on[link];
    PlannedMove move;
    move.flow = index;
    move.from_path = flow.current_path;
    move.to_path = best->path;
    move.from_port = flow.current_port;
    move.to_port = best->port;
    move.forced = true;
    move.reason = why_it_leaves(fabric, input, index);
    move.refuted_by =
        "a probe of port " + std::to_string(best->port) + " that goes otherwise than by " + switches(fabric, to);
    moves.push_back(std::move(move));
  }
  return moves;
}

}  // namespace te::traffic
