// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>
#include <cstdint>
#include <vector>

#include "te-controller/traffic/placement.h"

namespace te::traffic {

/// The units to move from `now` to `goal`: all that must leave, then others up to `most` in all, off the most loaded
/// links first, in an order in which the slowest flow never gets slower on the way where one exists.
[[nodiscard]] std::vector<std::uint32_t> sequence(const Problem& problem, const Placement& now, const Placement& goal,
                                                  std::size_t most);

}  // namespace te::traffic
