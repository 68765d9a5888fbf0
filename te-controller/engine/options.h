// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>

namespace te {

/// What the controller does with a plan.
enum class Mode : std::uint8_t {
  kObserve,  ///< shows it; steering that is in force stays
  kAct,      ///< carries it out
  kPaused,   ///< shows it; all steering has been taken back
};

/// When and how much to move.
struct PlanningOptions {
  std::int64_t interval_ms = 250;   ///< between planning cycles
  double hysteresis = 0.05;         ///< least gain of the slowest flow, as a share, that is worth a move
  std::int64_t cooldown_ms = 3000;  ///< a QP is left alone for this long after a move
  int moves_per_cycle = 16;
};

/// For an agent's answer, on top of the time that its probes may take.
inline constexpr std::int64_t kAnswerSlackNs = 2'000'000'000;

/// How source ports are probed.
struct ProbingOptions {
  double answers_per_switch_per_s = 100;  ///< switch CPUs are slow
  std::uint32_t attempts = 3;             ///< of one probe
  std::uint32_t timeout_ms = 200;         ///< wait for one answer
};

struct EngineOptions {
  Mode initial_mode = Mode::kObserve;  ///< at first start; afterwards the stored mode counts
  PlanningOptions planning;
  ProbingOptions probing;
  std::int64_t report_interval_ms = 500;  ///< between an agent's FlowUpdates
};

}  // namespace te
