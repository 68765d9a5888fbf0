// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <vector>

#include "te-controller/traffic/planner.h"

namespace te::traffic {

/// Moves of background flows (acknowledgements) off paths that are down or drained or by which nothing arrives, spread
/// over the others. They are no load worth balancing, but what waits for them stands still.
[[nodiscard]] std::vector<PlannedMove> background_off_closed_links(const Fabric& fabric, const PlanInput& input);

}  // namespace te::traffic
