// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <optional>
#include <span>
#include <string>

namespace te::traffic {

/// Mean rate of one flow over a window before and after a move, IP bits/s.
struct RateChange {
  double before_bps = 0;
  double after_bps = 0;
};

struct VerifyLimits {
  double idle_bps = 1e5;    ///< below: the flow pauses, its rate says nothing
  double tolerance = 0.10;  ///< relative loss that noise may cause
};

/// What was seen after a move. `affected`: flows that shared links with it before or share them now; `untouched`:
/// others, whose common change (a job pausing, a phase change) is not the move's doing.
struct MoveObservation {
  RateChange moved;
  std::span<const RateChange> affected;
  std::span<const RateChange> untouched;
  std::optional<bool> port_seen;        ///< the new port is on the wire; nothing: not observed yet
  std::optional<bool> path_as_planned;  ///< by a probe of the new port; nothing: not probed
};

enum class Verdict : std::uint8_t { kVerified, kWorse, kInconclusive };

struct Judgement {
  Verdict verdict = Verdict::kInconclusive;
  bool doubt_knowledge = false;  ///< the port's ECMP knowledge is to be probed again
  std::string text;              ///< what was measured, for the ledger
};

/// Judges a move: worse (roll back) when the port leads another way than planned, or the slowest of the moved and
/// affected active flows fell by more than the tolerance against the untouched ones; inconclusive while the flow is
/// idle or the port not seen.
[[nodiscard]] Judgement judge_move(const MoveObservation& seen, const VerifyLimits& limits);

}  // namespace te::traffic
