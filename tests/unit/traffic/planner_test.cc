// SPDX-License-Identifier: Apache-2.0
#include "te-controller/traffic/planner.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <set>
#include <string>
#include <vector>

#include "tests/support/planning_instance.h"
#include "tests/support/repeats.h"
#include "topology/builder.h"

namespace te::traffic {
namespace {

/// The fabric of quickstart: 2 leaves x 4 hosts, 4 spines, 1:1, 50 Mbit/s; a ring of 8 connections with two QPs each.
class QuickstartPlan : public ::testing::Test {
 protected:
  Instance random_instance(std::uint64_t seed) {
    TestRandom random(seed);
    return Instance(fabric, alternating_ring(4, 2), random);
  }
  /// All 16 flows by the first spine.
  Instance crowded() {
    Instance instance = random_instance(1);
    for (std::size_t flow = 0; flow < instance.input.flows.size(); ++flow) instance.place(flow, 0);
    return instance;
  }
  [[nodiscard]] LinkId link(const std::string& node, const std::string& port) const {
    return fabric.port(*fabric.find_port(*fabric.find_node(node), port)).out;
  }
  Fabric fabric = build_clos({.host_bps = 50e6, .uplink_bps = 50e6});
};

std::uint32_t busiest(const std::vector<std::uint32_t>& flows) { return *std::max_element(flows.begin(), flows.end()); }

bool has_note(const Plan& plan, const std::string& part) {
  return std::any_of(plan.notes.begin(), plan.notes.end(),
                     [&](const auto& note) { return note.find(part) != std::string::npos; });
}

TEST_F(QuickstartPlan, FindsTheOptimumFromThousandsOfRandomPlacements) {
  for (std::uint64_t seed = 1; seed <= testing::repeats(5000); ++seed) {
    const Instance instance = random_instance(seed);
    const Plan found = plan(fabric, instance.input);
    const auto flows = link_flows(fabric, instance.input, after_moves(instance.input, found, found.moves.size()));
    ASSERT_LE(busiest(flows), 2U) << "seed " << seed;
    ASSERT_DOUBLE_EQ(found.slowest_after_moves_bps, 25e6) << "seed " << seed;
  }
}

TEST_F(QuickstartPlan, NeverMakesTheSlowestSlowerOnTheWay) {
  for (std::uint64_t seed = 1; seed <= testing::repeats(500); ++seed) {
    const Instance instance = random_instance(seed);
    const Plan found = plan(fabric, instance.input);
    for (std::size_t moves = 0; moves <= found.moves.size(); ++moves) {
      const auto rates = rates_at(fabric, instance.input, after_moves(instance.input, found, moves));
      ASSERT_GE(*std::min_element(rates.begin(), rates.end()), found.slowest_now_bps * (1 - 1e-9)) << "seed " << seed;
    }
  }
}

TEST_F(QuickstartPlan, MovesNoFlowTwice) {
  const Instance instance = random_instance(3);
  std::set<std::size_t> moved;
  for (const PlannedMove& move : plan(fabric, instance.input).moves) EXPECT_TRUE(moved.insert(move.flow).second);
}

TEST_F(QuickstartPlan, MovesAreToPathsAndPortsOfTheFlow) {
  const Instance instance = random_instance(4);
  for (const PlannedMove& move : plan(fabric, instance.input).moves) {
    const PlanFlow& flow = instance.input.flows[move.flow];
    const std::uint32_t candidate = instance.candidate_of(move.flow, move.to_path);
    ASSERT_LT(candidate, flow.candidate_count);
    EXPECT_EQ(move.to_port, instance.input.candidates[flow.first_candidate + candidate].port);
    EXPECT_EQ(move.from_port, flow.current_port);
    EXPECT_NE(move.to_path, move.from_path);
  }
}

TEST_F(QuickstartPlan, NeedsNoMoreMovesThanThereAreFlowsTooMany) {
  // By one leaf 8 flows on the first spine: 6 must leave it; the same for the other leaf.
  EXPECT_EQ(plan(fabric, crowded().input).moves.size(), 12U);
}

TEST_F(QuickstartPlan, LeavesAnOptimalPlacementAlone) {
  Instance instance = random_instance(1);
  const Plan first = plan(fabric, instance.input);
  for (const PlannedMove& move : first.moves) instance.place(move.flow, instance.candidate_of(move.flow, move.to_path));
  const Plan second = plan(fabric, instance.input);
  EXPECT_TRUE(second.moves.empty());
  EXPECT_TRUE(has_note(second, "nothing is worth moving: the slowest flow gets 25 Mbit/s of at best 25 Mbit/s"));
}

TEST_F(QuickstartPlan, IsTheSameEachTime) {
  const Instance instance = random_instance(5);
  const Plan a = plan(fabric, instance.input);
  const Plan b = plan(fabric, instance.input);
  ASSERT_EQ(a.moves.size(), b.moves.size());
  for (std::size_t i = 0; i < a.moves.size(); ++i) {
    EXPECT_EQ(a.moves[i].flow, b.moves[i].flow);
    EXPECT_EQ(a.moves[i].to_path, b.moves[i].to_path);
    EXPECT_EQ(a.moves[i].reason, b.moves[i].reason);
  }
}

TEST_F(QuickstartPlan, PredictsWhatTheLoadModelSays) {
  const Instance instance = random_instance(6);
  const Plan found = plan(fabric, instance.input);
  EXPECT_EQ(found.rate_now_bps, rates_at(fabric, instance.input, after_moves(instance.input, found, 0)));
  EXPECT_EQ(found.rate_after_moves_bps,
            rates_at(fabric, instance.input, after_moves(instance.input, found, found.moves.size())));
  for (const PlannedMove& move : found.moves) {
    EXPECT_EQ(move.flow_before_bps, found.rate_now_bps[move.flow]);
    EXPECT_EQ(move.flow_after_bps, found.rate_after_moves_bps[move.flow]);
  }
  EXPECT_DOUBLE_EQ(found.moves.back().predicted_gain_bps, found.slowest_after_moves_bps - found.slowest_now_bps);
}

TEST_F(QuickstartPlan, EachMoveSaysWhyAndWhatWouldRefuteIt) {
  const Plan found = plan(fabric, crowded().input);
  ASSERT_FALSE(found.moves.empty());
  EXPECT_NE(found.moves[0].reason.find("carries 8 flows (6.25 Mbit/s each)"), std::string::npos)
      << found.moves[0].reason;
  EXPECT_NE(found.moves[0].reason.find("will carry 1 flow (50 Mbit/s)"), std::string::npos) << found.moves[0].reason;
  EXPECT_NE(found.moves[0].refuted_by.find("a probe of port " + std::to_string(found.moves[0].to_port)),
            std::string::npos);
}

// Budget

TEST_F(QuickstartPlan, KeepsToTheBudgetAndSaysWhatIsLeft) {
  Instance instance = crowded();
  instance.input.limits.moves_per_cycle = 5;
  const Plan found = plan(fabric, instance.input);
  EXPECT_EQ(found.moves.size(), 5U);
  EXPECT_EQ(found.moves_to_goal, 12U);
  EXPECT_TRUE(has_note(found, "7 more moves would follow in later cycles, up to 25 Mbit/s"));
}

TEST_F(QuickstartPlan, SmallBudgetsReachTheOptimumCycleByCycle) {
  for (std::uint64_t seed = 1; seed <= testing::repeats(100); ++seed) {
    Instance instance = random_instance(seed);
    instance.input.limits.moves_per_cycle = 2;
    double slowest_bps = 0;
    for (int cycle = 0; cycle < 12; ++cycle) {
      const Plan found = plan(fabric, instance.input);
      for (const PlannedMove& move : found.moves)
        instance.place(move.flow, instance.candidate_of(move.flow, move.to_path));
      ASSERT_GE(found.slowest_after_moves_bps, slowest_bps * (1 - 1e-9));
      slowest_bps = found.slowest_after_moves_bps;
    }
    ASSERT_DOUBLE_EQ(slowest_bps, 25e6) << "seed " << seed;
  }
}

TEST_F(QuickstartPlan, ABudgetOfNoneMovesNothing) {
  Instance instance = crowded();
  instance.input.limits.moves_per_cycle = 0;
  const Plan found = plan(fabric, instance.input);
  EXPECT_TRUE(found.moves.empty());
  EXPECT_TRUE(has_note(found, "budget of 0"));
}

// What may be moved

TEST_F(QuickstartPlan, DoesNotMoveWhatIsImmovable) {
  Instance instance = crowded();
  for (std::size_t flow = 0; flow < 8; ++flow) instance.input.flows[flow].immovable = "in cool-down, 2 s left";
  const Plan found = plan(fabric, instance.input);
  for (const PlannedMove& move : found.moves) EXPECT_GE(move.flow, 8U);
  EXPECT_TRUE(has_note(found, "8 elastic flows may not be moved now; h1 -> h5: in cool-down, 2 s left"));
}

TEST_F(QuickstartPlan, PutsOthersAroundWhatIsImmovable) {
  Instance instance = crowded();
  instance.input.flows[0].immovable = instance.input.flows[1].immovable = "pinned";
  EXPECT_DOUBLE_EQ(plan(fabric, instance.input).slowest_goal_bps, 25e6);
}

TEST_F(QuickstartPlan, UsesOnlyPathsWithAKnownPort) {
  Instance instance = crowded();
  for (PlanFlow& flow : instance.input.flows) flow.candidate_count = 2;
  const Plan found = plan(fabric, instance.input);
  EXPECT_DOUBLE_EQ(found.slowest_goal_bps, 12.5e6);
  EXPECT_DOUBLE_EQ(found.slowest_bound_bps, 12.5e6);
}

TEST_F(QuickstartPlan, UnknownPathsCountForNothingAndAreReported) {
  Instance instance = crowded();
  for (std::size_t flow = 0; flow < 6; ++flow) instance.input.flows[flow].current_path = kUnknownPath;
  const Plan found = plan(fabric, instance.input);
  EXPECT_EQ(found.unknown_path_flows, 6U);
  EXPECT_EQ(found.rate_now_bps[0], 0);
  EXPECT_TRUE(has_note(found, "6 elastic flows have an unknown path"));
  for (const PlannedMove& move : found.moves) EXPECT_GE(move.flow, 6U);
}

TEST_F(QuickstartPlan, AFlowThatDoesNotArriveLeavesItsUnknownPathForAnyKnownOne) {
  for (const bool elastic : {true, false}) {
    Instance instance = crowded();
    instance.input.limits.moves_per_cycle = 0;
    PlanFlow& lost = instance.input.flows[0];
    lost.current_path = kUnknownPath;
    lost.must_leave = true;
    lost.elastic = elastic;
    const Plan found = plan(fabric, instance.input);
    ASSERT_EQ(found.moves.size(), 1U);
    EXPECT_EQ(found.moves[0].flow, 0U);
    EXPECT_TRUE(found.moves[0].forced);
    EXPECT_NE(found.moves[0].to_path, kUnknownPath);
    EXPECT_EQ(found.moves[0].reason, "what it sends does not arrive, and its way is not known");
    EXPECT_EQ(found.unknown_path_flows, 0U);
    lost.candidate_count = 0;
    EXPECT_TRUE(plan(fabric, instance.input).moves.empty());
  }
}

TEST_F(QuickstartPlan, APlanOfNoFlowsIsEmpty) {
  const Plan found = plan(fabric, PlanInput{});
  EXPECT_TRUE(found.moves.empty());
  EXPECT_EQ(found.slowest_now_bps, 0);
}

TEST_F(QuickstartPlan, BackgroundTakesCapacityAndIsNotMoved) {
  Instance instance = random_instance(1);
  for (std::size_t flow = 8; flow < 16; ++flow) {
    instance.input.flows[flow].elastic = false;
    instance.input.flows[flow].measured_bps = 1e6;
  }
  const Plan found = plan(fabric, instance.input);
  for (const PlannedMove& move : found.moves) EXPECT_LT(move.flow, 8U);
  EXPECT_EQ(found.rate_now_bps[8], 0);
  EXPECT_LT(found.slowest_goal_bps, 25e6);
}

TEST_F(QuickstartPlan, AvoidsALinkThatBackgroundFills) {
  Instance instance = random_instance(1);
  instance.input.background_bps.assign(fabric.links().size(), 0);
  const LinkId full = link("leaf1", "spine2");
  instance.input.background_bps[full] = 49e6;
  const Plan found = plan(fabric, instance.input);
  const auto flows = link_flows(fabric, instance.input, after_moves(instance.input, found, found.moves.size()));
  EXPECT_EQ(flows[full], 0U);
}

TEST_F(QuickstartPlan, SmallBackgroundDoesNotKeepItMoving) {
  TestRandom random(9);
  Instance instance = random_instance(2);
  for (int cycle = 0; cycle < 20; ++cycle) {
    instance.input.background_bps.clear();
    for (std::size_t i = 0; i < fabric.links().size(); ++i)
      instance.input.background_bps.push_back(random.below(600000));
    const Plan found = plan(fabric, instance.input);
    ASSERT_TRUE(cycle == 0 || found.moves.empty()) << "cycle " << cycle;
    for (const PlannedMove& move : found.moves)
      instance.place(move.flow, instance.candidate_of(move.flow, move.to_path));
  }
}

// Hysteresis

TEST_F(QuickstartPlan, AGainBelowTheHysteresisIsNotWorthAMove) {
  Instance instance = random_instance(1);
  instance.input.limits.hysteresis = 10;
  EXPECT_TRUE(plan(fabric, instance.input).moves.empty());
}

TEST_F(QuickstartPlan, ImprovesTheNextSlowestWhereTheSlowestCannot) {
  // h1's two QPs are stuck together with a third flow; the rest is crowded elsewhere and can be helped.
  Instance instance = crowded();
  for (std::size_t flow = 0; flow < 16; ++flow) {
    if (instance.input.flows[flow].label.starts_with("h5") || instance.input.flows[flow].label.starts_with("h6") ||
        instance.input.flows[flow].label.starts_with("h7") || instance.input.flows[flow].label.starts_with("h8")) {
      instance.input.flows[flow].immovable = "pinned";
    }
  }
  const Plan found = plan(fabric, instance.input);
  EXPECT_DOUBLE_EQ(found.slowest_now_bps, 6.25e6);
  EXPECT_DOUBLE_EQ(found.slowest_goal_bps, 6.25e6);
  EXPECT_EQ(found.moves.size(), 6U);
  EXPECT_EQ(std::count(found.rate_goal_bps.begin(), found.rate_goal_bps.end(), 25e6), 8);
}

// Closed links

TEST_F(QuickstartPlan, FlowsLeaveADownLinkFirst) {
  Instance instance = random_instance(1);
  const LinkId down = link("spine2", "leaf2");
  fabric.set_link_state(down, LinkState::kDown);
  const Plan found = plan(fabric, instance.input);
  ASSERT_FALSE(found.moves.empty());
  EXPECT_TRUE(found.moves[0].forced);
  EXPECT_EQ(found.moves[0].reason, "spine2:leaf2 -> leaf2:spine2 is down");
  const auto flows = link_flows(fabric, instance.input, after_moves(instance.input, found, found.moves.size()));
  EXPECT_EQ(flows[down], 0U);
  EXPECT_EQ(found.slowest_now_bps, 0);
  EXPECT_DOUBLE_EQ(found.slowest_goal_bps, 50e6 / 3);  // 8 flows over 3 links
}

TEST_F(QuickstartPlan, FlowsLeaveADrainedLinkThoughItStillCarries) {
  Instance instance = crowded();
  const LinkId drained = link("leaf1", "spine1");
  fabric.set_link_state(drained, LinkState::kDrained);
  const Plan found = plan(fabric, instance.input);
  EXPECT_GT(found.slowest_now_bps, 0);
  const auto flows = link_flows(fabric, instance.input, after_moves(instance.input, found, found.moves.size()));
  EXPECT_EQ(flows[drained], 0U);
  EXPECT_TRUE(found.moves[0].forced);
}

TEST_F(QuickstartPlan, DrainsWhateverTheHysteresis) {
  Instance instance = crowded();
  instance.input.limits.hysteresis = 1000;
  fabric.set_link_state(link("leaf1", "spine1"), LinkState::kDrained);
  EXPECT_EQ(plan(fabric, instance.input).moves.size(), 8U);
}

TEST_F(QuickstartPlan, SaysWhenAFlowCannotLeaveADownLink) {
  Instance instance = crowded();
  instance.input.flows[0].candidate_count = 1;
  fabric.set_link_state(link("leaf1", "spine1"), LinkState::kDown);
  const Plan found = plan(fabric, instance.input);
  EXPECT_TRUE(has_note(
      found, "h1 -> h5 is on a link that is down or drained and stays: no port is known that leads another way"));
}

TEST_F(QuickstartPlan, ForcedMovesComeFirstWhateverTheBudget) {
  Instance instance = crowded();
  fabric.set_link_state(link("leaf1", "spine1"), LinkState::kDown);
  instance.input.limits.moves_per_cycle = 1;
  const Plan found = plan(fabric, instance.input);
  ASSERT_EQ(found.moves.size(), 8U);
  for (const PlannedMove& move : found.moves) EXPECT_TRUE(move.forced) << move.reason;
}

TEST_F(QuickstartPlan, BackgroundLeavesADownLinkAndNoOther) {
  Instance instance = crowded();
  instance.input.flows[0].elastic = false;
  EXPECT_TRUE(
      std::ranges::none_of(plan(fabric, instance.input).moves, [](const auto& move) { return move.flow == 0; }));
  fabric.set_link_state(link("leaf1", "spine1"), LinkState::kDown);
  const Plan found = plan(fabric, instance.input);
  const auto move = std::ranges::find(found.moves, std::size_t{0}, &PlannedMove::flow);
  ASSERT_NE(move, found.moves.end());
  EXPECT_TRUE(move->forced);
  for (const LinkId id : instance.input.paths.links(move->to_path)) EXPECT_NE(id, link("leaf1", "spine1"));
  EXPECT_EQ(move->reason, "leaf1:spine1 -> spine1:leaf1 is down");
  EXPECT_GE(found.moves_to_goal, found.moves.size());
  EXPECT_FALSE(has_note(found, "more move")) << "moves of background are no moves that are left";
}

}  // namespace
}  // namespace te::traffic
