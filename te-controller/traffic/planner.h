// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <string>
#include <vector>

#include "te-controller/traffic/load_model.h"
#include "topology/fabric.h"

namespace te::traffic {

/// A path a flow could be put on, and the source port known to lead there.
struct Candidate {
  PathIndex path = kUnknownPath;
  std::uint16_t port = 0;
};

/// One direction of a flow. Elastic flows take what they get; the others (ACKs, idle) are background at their measured
/// rate. A flow is moved only when `immovable` is empty, and a background flow only where it must be.
struct PlanFlow {
  std::string label;  ///< for reasons: "h1 -> h4 QP 0x1a2b"
  bool elastic = true;
  double measured_bps = 0;                ///< background load of a flow that is not elastic, IP bits/s
  PathIndex current_path = kUnknownPath;  ///< parallel links not told apart: any one of them
  std::uint16_t current_port = 0;
  bool must_leave = false;            ///< nothing arrives by its path, which is unknown: any known one is better
  std::string immovable;              ///< why it must stay ("in cool-down, 2.1 s left"); empty: may be moved
  std::uint32_t first_candidate = 0;  ///< into PlanInput::candidates
  std::uint32_t candidate_count = 0;
};

struct PlanLimits {
  std::size_t moves_per_cycle = 16;
  /// Least relative gain worth moving for: of the slowest flow, or where that stays, of the next slowest that changes.
  double hysteresis = 0.05;
  /// Rates closer than this (relative) are the same.
  double tolerance = 0.02;
};

/// Everything a planning cycle sees. Flat, so that 10,000 flows stay cheap: fill `paths`, then `candidates`, then flows
/// that point into them.
struct PlanInput {
  PathTable paths;
  std::vector<Candidate> candidates;
  std::vector<PlanFlow> flows;
  std::vector<double> background_bps;  ///< by link, measured beyond `flows`; empty: none
  PlanLimits limits;

  /// Appends a flow with its candidates; returns its index.
  std::size_t add_flow(PlanFlow flow, std::span<const Candidate> its_candidates);
};

struct PlannedMove {
  std::size_t flow = 0;  ///< index into PlanInput::flows
  PathIndex from_path = kUnknownPath;
  PathIndex to_path = kUnknownPath;
  std::uint16_t from_port = 0;
  std::uint16_t to_port = 0;
  bool forced = false;            ///< off a down or drained link, or an unknown path by which nothing arrives
  double predicted_gain_bps = 0;  ///< of the slowest flow, by this move together with those before it
  double flow_before_bps = 0;     ///< this flow: predicted now
  double flow_after_bps = 0;      ///< and after all moves of this cycle
  std::string reason;
  std::string refuted_by;  ///< what would show it wrong
};

struct Plan {
  std::vector<PlannedMove>
      moves;  ///< of this cycle, in the order to make them; no prefix is worse than now where possible
  std::size_t moves_to_goal = 0;             ///< of the whole plan, of which `moves` is a part
  std::vector<double> rate_now_bps;          ///< by flow, predicted; 0 for background and unknown path
  std::vector<double> rate_after_moves_bps;  ///< after `moves`
  std::vector<double> rate_goal_bps;         ///< after the whole plan
  double slowest_now_bps = 0;                ///< of elastic flows with a known path; 0 when there are none
  double slowest_after_moves_bps = 0;
  double slowest_goal_bps = 0;
  double slowest_bound_bps =
      0;  ///< no placement on the known candidates is better (pigeonhole); > slowest_goal: not shown optimal
  std::int64_t balance_work = 0;       ///< links looked at to balance them: the cost of the plan, whatever the machine
  std::size_t unknown_path_flows = 0;  ///< elastic, not counted in the loads
  std::vector<std::string> notes;      ///< what could not be moved, and why; that nothing is worth moving
};

/// Plans one cycle: maximise the slowest flow, then the next slowest, with few moves. Flows on down or drained links go
/// first. Never worse than what is there; the same input gives the same plan.
[[nodiscard]] Plan plan(const Fabric& fabric, const PlanInput& input);

}  // namespace te::traffic
