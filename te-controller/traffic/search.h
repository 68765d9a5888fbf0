// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <vector>

#include "te-controller/traffic/placement.h"

namespace te::traffic {

/// A lower bound on congestion (flows / capacity, 1/bps) per link and overall. Pigeonhole: flows that must leave (or
/// reach) one switch over a set of links put ceil(share) of them on one (facts/traffic.md). A link holds no
/// more of them than the links one hop on that they reach by it.
struct Bounds {
  std::vector<double> by_link;  ///< of the group the link is in; of all where it is in none
  double overall = 0;           ///< 1 / overall: no placement has a faster slowest flow
};
[[nodiscard]] Bounds pigeonhole_bounds(const Fabric& fabric, const Problem& problem);

/// Moves units until no link is congested beyond what it must be, with few moves: min-conflict repair with a tabu list
/// on whole link slots (facts/traffic.md), from the given placement; retries, then weaker targets, where that fails.
/// Adds the links it looked at to `work`: what the search cost, on whatever machine; it grows with the problem.
[[nodiscard]] Placement balance(const Problem& problem, const Bounds& bounds, const Placement& start, double tolerance,
                                std::int64_t& work);

/// Exact local search for what balance() leaves: single moves and pair swaps that improve the sorted rates by more than
/// `least_gain`; does nothing where an exact evaluation is too dear.
[[nodiscard]] Placement polish(const PlanInput& input, const Problem& problem, const Placement& start,
                               double least_gain);

/// Puts units back where they are now as long as no rate (exact for small problems) or no link gets worse by more than
/// `tolerance`: moves that do not pay.
[[nodiscard]] Placement prune(const PlanInput& input, const Problem& problem, const Bounds& bounds,
                              const Placement& goal, double tolerance);

}  // namespace te::traffic
