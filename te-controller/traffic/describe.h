// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <span>
#include <string>
#include <vector>

#include "te-controller/traffic/placement.h"

namespace te::traffic {

/// Fills `plan.moves` for the units in `order`, made one after the other from `now`: reasons, gains, what would refute
/// them. The rates of `plan` must be there.
void describe_moves(const Fabric& fabric, const PlanInput& input, const Problem& problem, const Placement& now,
                    const Placement& goal, const std::vector<std::uint32_t>& order, Plan& plan);

/// Why a flow must leave its path: the first link that takes no flows; or that nothing arrives.
[[nodiscard]] std::string why_it_leaves(const Fabric& fabric, const PlanInput& input, std::size_t flow);
/// The names of the switches of a path.
[[nodiscard]] std::string switches(const Fabric& fabric, std::span<const LinkId> links);

/// Adds to `plan.notes` why nothing is moved, or what the budget leaves for later.
void describe_outcome(const PlanInput& input, Plan& plan);

}  // namespace te::traffic
