// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>

namespace te {

/// One full planning cycle of the controller, all that lies between "it is time" and "here are the moves".
struct CycleFigures {
  double snapshot_ms = 0;  ///< reading flows, paths and known ports into the planner's input
  double plan_ms = 0;
  double total_ms = 0;  ///< snapshot, plan and taking the outcome
  std::size_t flows = 0;
  std::size_t moves = 0;
};

/// Medians over `runs` cycles of an engine to which 1,024 hosts reported 10,000 flows in rings over 32 leaves and 16
/// spines, ports placed at random, every path of every pair known.
[[nodiscard]] CycleFigures measure_cycle(int runs);

}  // namespace te
