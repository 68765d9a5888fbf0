// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <set>
#include <vector>

#include "te-controller/diagnosis/link_health.h"
#include "topology/fabric.h"

namespace te::diagnosis {

/// What one flow's receiver counted over the last seconds, while the flow went one way all the time.
struct FlowLoss {
  std::vector<LinkId> links;  ///< first to last
  std::uint64_t packets = 0;  ///< that arrived
  std::uint64_t gaps = 0;     ///< breaks in the packet sequence: one or more packets lost each
};

struct LossLimits {
  std::uint64_t least_gaps = 5;        ///< fewer may be moves and ends of outages
  double least_loss = 0.002;           ///< gaps / packets of a flow that loses packets
  std::uint64_t clean_packets = 1000;  ///< without least_loss / kCleanFactor of gaps: its way is clean
  static constexpr double kCleanFactor = 8;
};

/// Links that a flow crosses which loses nothing.
[[nodiscard]] std::set<LinkId> find_clean_links(const std::vector<FlowLoss>& flows, const LossLimits& limits);

/// Names the links that explain the flows' losses: those that no clean flow crosses, fewest that cover all flows that
/// lose packets (greedy set cover). Links that do so alike - crossed by the same flows - are candidates for one place
/// and are all named. Links of flows that cannot be told (few packets) say nothing. Pure.
[[nodiscard]] std::vector<LossSuspect> find_loss_suspects(const std::vector<FlowLoss>& flows, const LossLimits& limits);

}  // namespace te::diagnosis
