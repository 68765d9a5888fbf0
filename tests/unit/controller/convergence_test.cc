// SPDX-License-Identifier: Apache-2.0
// The engine in a simulated fabric: what it reaches, and what it leaves alone.
#include <gtest/gtest.h>

#include <algorithm>
#include <vector>

#include "te-controller/engine/views.h"
#include "tests/support/repeats.h"
#include "tests/unit/controller/simulation.h"

namespace te::testing {
namespace {

constexpr double kNearIdeal = kNear * kIdealBps;

SimulationSpec seeded(std::uint64_t seed) {
  SimulationSpec spec;
  spec.seed = seed;
  return spec;
}

/// Observed for 3 s, then acting.
std::int64_t converge(Simulation& simulation) {
  simulation.connect_agents();
  simulation.run_for(3 * kSecond);
  EXPECT_TRUE(simulation.engine().set_acting(true, simulation.now()).ok());
  return simulation.run_until_slowest(kNearIdeal, 2 * kSecond, 10 * kSecond);
}

class OverSeeds : public ::testing::TestWithParam<std::uint64_t> {};
INSTANTIATE_TEST_SUITE_P(Convergence, OverSeeds, ::testing::Range<std::uint64_t>(1, 1 + repeats(40)));

TEST_P(OverSeeds, ReachesTheOptimumSoonAndThenMovesNothingMore) {
  Simulation simulation(seeded(GetParam()));
  const std::int64_t took_ns = converge(simulation);
  ASSERT_GE(took_ns, 0) << "never reached";
  EXPECT_LE(took_ns, kSecond);
  const int moves = simulation.engine().ledger().total();
  simulation.run_for(20 * kSecond);
  EXPECT_EQ(simulation.engine().ledger().total(), moves);
  EXPECT_EQ(simulation.engine().ledger().rolled_back(), 0);
  for (const auto& [number, move] : simulation.engine().ledger().moves())
    EXPECT_EQ(move.state(), "verified") << move.outcome();
  EXPECT_GE(simulation.slowest_bps(), kNearIdeal);
}

TEST_P(OverSeeds, ReachesTheOptimumWithoutTheQpTable) {
  SimulationSpec spec = seeded(GetParam());
  spec.qp_table = false;
  Simulation simulation(spec);
  const std::int64_t took_ns = converge(simulation);
  ASSERT_GE(took_ns, 0);
  EXPECT_LE(took_ns, kSecond);
}

TEST_P(OverSeeds, ReachesTheOptimumWithin5SecondsOfTheFirstReportWhenActingFromTheStart) {
  SimulationSpec spec = seeded(GetParam());
  spec.options.initial_mode = Mode::kAct;
  Simulation simulation(spec);
  simulation.connect_agents();
  const std::int64_t took_ns = simulation.run_until_slowest(kNearIdeal, 2 * kSecond, 10 * kSecond);
  ASSERT_GE(took_ns, 0);
  EXPECT_LE(took_ns, 5 * kSecond);
}

TEST_P(OverSeeds, ReachesTheOptimumThoughAThirdOfTheProbesIsLost) {
  SimulationSpec spec = seeded(GetParam());
  spec.probe_loss = 0.33;
  Simulation simulation(spec);
  const std::int64_t took_ns = converge(simulation);
  ASSERT_GE(took_ns, 0);
  EXPECT_LE(took_ns, 5 * kSecond);
}

TEST_P(OverSeeds, TakesBackMovesWhosePathsWerePredictedWronglyAndStillReachesTheOptimum) {
  Simulation simulation(seeded(GetParam()));
  simulation.connect_agents();
  simulation.run_for(3 * kSecond);
  simulation.rehash();
  ASSERT_TRUE(simulation.engine().set_acting(true, simulation.now()).ok());
  ASSERT_GE(simulation.run_until_slowest(kNearIdeal, 5 * kSecond, 60 * kSecond), 0);
  EXPECT_GT(simulation.engine().ledger().rolled_back(), 0);
}

TEST(Observe, SendsNoSteeringButShowsAPlan) {
  Simulation simulation(seeded(3));
  simulation.connect_agents();
  simulation.run_for(20 * kSecond);
  EXPECT_EQ(simulation.steering_sets(), 0);
  EXPECT_EQ(simulation.engine().ledger().total(), 0);
  ASSERT_NE(simulation.engine().last_plan().job, nullptr);
  EXPECT_FALSE(simulation.engine().last_plan().plan.moves.empty());
  EXPECT_NEAR(simulation.engine().last_plan().plan.slowest_goal_bps, kIdealBps, 0.05 * kIdealBps);
}

TEST(Observe, CoversAllPathsOfAllPairsWithinTwoSecondsAndTheBudget) {
  Simulation simulation(seeded(5));
  simulation.connect_agents();
  simulation.run_for(2300 * kMs);  // agents connect within 0.3 s
  ASSERT_EQ(simulation.engine().prober().pairs().size(), 16U);
  for (const auto& [pair, state] : simulation.engine().prober().pairs())
    EXPECT_EQ(state.progress, PairProgress::kCovered);
  EXPECT_LE(simulation.busiest_switch_second(), 150U);  // 100 a second and a burst of 25, chance included
}

TEST(Observe, OnlyRefreshesPortsInUseAndSpotChecksSwitchesOnceAllIsKnown) {
  Simulation simulation(seeded(5));
  simulation.connect_agents();
  simulation.run_for(10 * kSecond);
  const auto sent = simulation.engine().prober().counters().sent;
  simulation.run_for(60 * kSecond);
  constexpr std::size_t kLeaves = 2;
  constexpr auto kRounds = static_cast<std::size_t>(60 * kSecond / SwitchTrials::kSpotCheckNs);
  EXPECT_EQ(simulation.engine().prober().counters().sent,
            sent + 2 * simulation.flows() + kLeaves * SwitchTrials::kSpotPorts * kRounds);
}

TEST(Observe, FindsOutThatSwitchesHashAnew) {
  Simulation simulation(seeded(5));
  simulation.connect_agents();
  simulation.run_for(10 * kSecond);
  simulation.rehash();
  simulation.run_for(35 * kSecond);
  EXPECT_NEAR(simulation.engine().last_plan().plan.slowest_now_bps, simulation.slowest_bps(), 0.1 * kIdealBps);
}

const v1::TierView* tier(const v1::Imbalance& view, const std::string& name) {
  const auto found = std::ranges::find(view.tiers(), name, &v1::TierView::tier);
  return found == view.tiers().end() ? nullptr : &*found;
}

TEST(Observe, ShowsHowUnevenlyFlowsLieAndThatMovesMakeItEven) {
  Simulation simulation(seeded(1));
  simulation.connect_agents();
  simulation.run_for(5 * kSecond);
  Views views(simulation.engine());
  const v1::Imbalance before = views.imbalance(simulation.now());
  ASSERT_NE(tier(before, "leaf -> spine"), nullptr);
  EXPECT_EQ(tier(before, "leaf -> spine")->links(), 8);
  EXPECT_GT(tier(before, "leaf -> spine")->flows().variation(), 0.2);
  EXPECT_GE(before.lost_share(), 1.0 / 3 - 0.01);  // three or more of eight flows on one of four uplinks
  EXPECT_DOUBLE_EQ(tier(before, "host -> leaf")->flows().variation(), 0);

  ASSERT_TRUE(simulation.engine().set_acting(true, simulation.now()).ok());
  ASSERT_GE(simulation.run_until_slowest(kNearIdeal, 3 * kSecond, 10 * kSecond), 0);
  const v1::Imbalance after = views.imbalance(simulation.now());
  EXPECT_DOUBLE_EQ(tier(after, "leaf -> spine")->flows().variation(), 0);
  EXPECT_NEAR(tier(after, "spine -> leaf")->utilisation().variation(), 0, 0.02);
  EXPECT_NEAR(after.lost_share(), 0, 0.01);

  simulation.set_cable("leaf1", "spine2", false);
  simulation.run_for(5 * kSecond);
  const v1::Imbalance broken = views.imbalance(simulation.now());
  EXPECT_EQ(tier(broken, "leaf -> spine")->links(), 7);
  EXPECT_EQ(tier(broken, "leaf -> spine")->links_closed(), 1);
  const v1::SwitchList switches = views.switches(simulation.now());
  for (const v1::SwitchView& one : switches.switches()) {
    EXPECT_EQ(one.links_down(), one.name() == "leaf1" || one.name() == "spine2" ? 1 : 0) << one.name();
    EXPECT_EQ(one.links(), one.kind() == "leaf" ? 8 : 2) << one.name();
    EXPECT_EQ(one.elastic_flows() > 0, one.name() != "spine2") << one.name();  // it leads nowhere any more
    EXPECT_EQ(one.ecmp(), one.kind() == "leaf" ? "by port" : "unknown") << one.name();
  }
}

TEST(ActOff, KeepsWhatIsSteered) {
  Simulation simulation(seeded(2));
  ASSERT_GE(converge(simulation), 0);
  const std::size_t steered = simulation.steered_flows();
  ASSERT_GT(steered, 0U);
  ASSERT_TRUE(simulation.engine().set_acting(false, simulation.now()).ok());
  simulation.run_for(5 * kSecond);
  EXPECT_EQ(simulation.steered_flows(), steered);
}

TEST(Pause, TakesAllSteeringBackAndResumeSteersAgain) {
  Simulation simulation(seeded(2));
  ASSERT_GE(converge(simulation), 0);
  ASSERT_GT(simulation.steered_flows(), 0U);
  simulation.engine().pause(simulation.now());
  simulation.run_for(100 * kMs);
  EXPECT_EQ(simulation.steered_flows(), 0U);
  const int moves = simulation.engine().ledger().total();
  simulation.run_for(10 * kSecond);
  for (const auto& [number, move] : simulation.engine().ledger().moves())
    EXPECT_EQ(move.state(), "verified") << move.outcome();
  EXPECT_EQ(simulation.steered_flows(), 0U);
  EXPECT_EQ(simulation.engine().ledger().total(), moves);
  EXPECT_FALSE(simulation.engine().set_acting(true, simulation.now()).ok());
  ASSERT_TRUE(simulation.engine().resume(simulation.now()).ok());
  EXPECT_EQ(simulation.engine().mode(), Mode::kAct);
  EXPECT_GE(simulation.run_until_slowest(kNearIdeal, 2 * kSecond, 5 * kSecond), 0);
}

TEST(Restart, AdoptsWhatAgentsSteerAndChangesNothing) {
  Simulation simulation(seeded(4));
  ASSERT_GE(converge(simulation), 0);
  simulation.run_for(5 * kSecond);
  const int sets = simulation.steering_sets();
  const std::size_t steered = simulation.steered_flows();
  const int moves = simulation.engine().ledger().total();
  simulation.restart_controller(simulation.stored());
  EXPECT_EQ(simulation.engine().mode(), Mode::kAct);
  simulation.run_for(15 * kSecond);
  EXPECT_EQ(simulation.steering_sets(), sets);
  EXPECT_EQ(simulation.steered_flows(), steered);
  EXPECT_EQ(simulation.engine().ledger().total(), moves);
  EXPECT_EQ(simulation.engine().steering().size(), steered);
}

TEST_P(OverSeeds, MovesNothingWhenAgentsFindANewControllerOneAfterTheOther) {
  Simulation simulation(seeded(GetParam()));
  ASSERT_GE(converge(simulation), 0);
  simulation.run_for(5 * kSecond);
  const int moves = simulation.engine().ledger().total();
  simulation.restart_controller(simulation.stored(), 6 * kSecond);
  simulation.run_for(20 * kSecond);
  EXPECT_EQ(simulation.engine().ledger().total(), moves);
  EXPECT_GE(simulation.slowest_bps(), kNearIdeal);
}

TEST_P(OverSeeds, TakesNoMoveBackWhoseAgentDiedBeforeItCouldReport) {
  Simulation simulation(seeded(GetParam()));
  simulation.kill_next_steered();
  EXPECT_GE(converge(simulation), 0);
  simulation.run_for(10 * kSecond);
  for (const auto& [number, move] : simulation.engine().ledger().moves())
    EXPECT_EQ(move.state(), "verified") << move.outcome();
  EXPECT_GE(simulation.slowest_bps(), kNearIdeal);
}

TEST_P(OverSeeds, TakesNoMoveBackBecauseAnAgentIsAwayWhileItIsJudged) {
  Simulation simulation(seeded(GetParam()));
  simulation.connect_agents();
  simulation.run_for(3 * kSecond);
  ASSERT_TRUE(simulation.engine().set_acting(true, simulation.now()).ok());
  simulation.run_for(100 * kMs);
  simulation.disconnect_agent(GetParam() % 8);
  simulation.run_for(8 * kSecond);
  simulation.connect_agents();
  simulation.run_for(10 * kSecond);
  EXPECT_EQ(simulation.engine().ledger().rolled_back(), 0);
  for (const auto& [number, move] : simulation.engine().ledger().moves())
    EXPECT_EQ(move.state(), "verified") << move.outcome();
}

TEST(Restart, WithoutItsStateStillChangesNothing) {
  Simulation simulation(seeded(4));
  ASSERT_GE(converge(simulation), 0);
  simulation.run_for(5 * kSecond);
  const int sets = simulation.steering_sets();
  simulation.restart_controller({});
  simulation.run_for(5 * kSecond);
  ASSERT_TRUE(simulation.engine().set_acting(true, simulation.now()).ok());
  simulation.run_for(10 * kSecond);
  EXPECT_EQ(simulation.steering_sets(), sets);
  EXPECT_GE(simulation.slowest_bps(), kNearIdeal);
}

TEST(Restart, WhilePausedKeepsSteeringAway) {
  Simulation simulation(seeded(4));
  ASSERT_GE(converge(simulation), 0);
  PersistentState state = simulation.stored();
  state.mode = Mode::kPaused;  // the pause reached the disk, but no agent
  state.resume_mode = Mode::kAct;
  simulation.restart_controller(state);
  simulation.run_for(kSecond);
  EXPECT_EQ(simulation.steered_flows(), 0U);
  ASSERT_TRUE(simulation.engine().resume(simulation.now()).ok());
  EXPECT_EQ(simulation.engine().mode(), Mode::kAct);
}

TEST(WallClock, MayJumpAsItLikes) {
  Simulation steady(seeded(4));
  Simulation jumping(seeded(4));
  constexpr std::int64_t kYearUs = 31'536'000'000'000;
  for (Simulation* one : {&steady, &jumping}) one->connect_agents();
  for (int second = 0; second < 20; ++second) {
    jumping.jump_wall_clock(second % 2 == 0 ? kYearUs : -2 * kYearUs);
    for (Simulation* one : {&steady, &jumping}) {
      if (second == 3) {
        ASSERT_TRUE(one->engine().set_acting(true, one->now()).ok());
      }
      one->run_for(kSecond);
    }
  }
  EXPECT_EQ(jumping.engine().ledger().total(), steady.engine().ledger().total());
  EXPECT_EQ(jumping.engine().ledger().rolled_back(), 0);
  EXPECT_GE(jumping.slowest_bps(), kNearIdeal);
  EXPECT_GT(jumping.steered_flows(), 0U);
}

TEST(WallClock, OfANewControllerMayBeEarlierThanThatOfTheLast) {
  Simulation simulation(seeded(4));
  ASSERT_GE(converge(simulation), 0);
  simulation.run_for(5 * kSecond);
  simulation.jump_wall_clock(-1'000'000'000'000);
  simulation.restart_controller({});
  simulation.run_for(5 * kSecond);
  simulation.engine().pause(simulation.now());
  simulation.run_for(kSecond);
  EXPECT_EQ(simulation.steered_flows(), 0U);
}

TEST(Verify, FailsMovesThatDoNotShowOnTheWire) {
  Simulation simulation(seeded(6));
  simulation.break_steering();
  simulation.connect_agents();
  simulation.run_for(3 * kSecond);
  ASSERT_TRUE(simulation.engine().set_acting(true, simulation.now()).ok());
  simulation.run_for(5 * kSecond);
  const auto& moves = simulation.engine().ledger().moves();
  ASSERT_FALSE(moves.empty());
  EXPECT_EQ(moves.begin()->second.state(), "failed") << moves.begin()->second.outcome();
  EXPECT_FALSE(std::ranges::any_of(moves, [](const auto& entry) { return entry.second.state() == "verified"; }));
}

TEST(Verify, WaitsWhileTheJobPauses) {
  Simulation simulation(seeded(7));
  simulation.connect_agents();
  simulation.run_for(3 * kSecond);
  ASSERT_TRUE(simulation.engine().set_acting(true, simulation.now()).ok());
  simulation.run_for(100 * kMs);
  ASSERT_GT(simulation.steered_flows(), 0U);
  simulation.set_paused(true);
  simulation.run_for(4 * kSecond);
  EXPECT_GT(simulation.engine().mover().under_way(), 0U);
  simulation.set_paused(false);
  simulation.run_for(4 * kSecond);
  EXPECT_EQ(simulation.engine().mover().under_way(), 0U);
  EXPECT_EQ(simulation.engine().ledger().rolled_back(), 0);
}

TEST(Agents, ThatReconnectAreSteeredAsBefore) {
  Simulation simulation(seeded(8));
  ASSERT_GE(converge(simulation), 0);
  simulation.run_for(5 * kSecond);
  const std::size_t steered = simulation.steered_flows();
  for (std::size_t host = 0; host < 8; ++host) simulation.disconnect_agent(host);
  simulation.run_for(2 * kSecond);
  simulation.connect_agents();
  simulation.run_for(5 * kSecond);
  EXPECT_EQ(simulation.steered_flows(), steered);
  EXPECT_GE(simulation.slowest_bps(), kNearIdeal);
}

}  // namespace
}  // namespace te::testing
