// SPDX-License-Identifier: Apache-2.0
#include <gtest/gtest.h>

#include <vector>

#include "te-controller/traffic/cool_down.h"
#include "te-controller/traffic/move_state.h"
#include "te-controller/traffic/verify.h"

namespace te::traffic {
namespace {

constexpr double kMbit = 1e6;

class JudgeMoveTest : public ::testing::Test {
 protected:
  Judgement judge() {
    seen.affected = affected;
    seen.untouched = untouched;
    return judge_move(seen, limits);
  }
  VerifyLimits limits;
  std::vector<RateChange> affected;
  std::vector<RateChange> untouched;
  MoveObservation seen{{12 * kMbit, 24 * kMbit}, {}, {}, true, true};
};

TEST_F(JudgeMoveTest, AFasterFlowIsVerified) { EXPECT_EQ(judge().verdict, Verdict::kVerified); }

TEST_F(JudgeMoveTest, ASlowerFlowIsWorse) {
  seen.moved = {24 * kMbit, 12 * kMbit};
  const auto judgement = judge();
  EXPECT_EQ(judgement.verdict, Verdict::kWorse);
  EXPECT_TRUE(judgement.doubt_knowledge);
  EXPECT_NE(judgement.text.find("24 Mbit/s before, 12 Mbit/s after"), std::string::npos) << judgement.text;
}

TEST_F(JudgeMoveTest, NoiseIsNotWorse) {
  seen.moved = {24 * kMbit, 22.5 * kMbit};
  EXPECT_EQ(judge().verdict, Verdict::kVerified);
}

TEST_F(JudgeMoveTest, AMoveThatOnlyHelpsItsNeighboursIsVerified) {
  seen.moved = {24 * kMbit, 24 * kMbit};
  affected = {{12 * kMbit, 24 * kMbit}};
  EXPECT_EQ(judge().verdict, Verdict::kVerified);
}

TEST_F(JudgeMoveTest, ASlowerNeighbourIsWorseWhenItBecomesTheSlowest) {
  affected = {{24 * kMbit, 8 * kMbit}};
  EXPECT_EQ(judge().verdict, Verdict::kWorse);
}

TEST_F(JudgeMoveTest, AFasterFlowThatGivesSomeUpIsVerified) {
  seen.moved = {48 * kMbit, 24 * kMbit};
  affected = {{12 * kMbit, 24 * kMbit}};
  EXPECT_EQ(judge().verdict, Verdict::kVerified);
}

TEST_F(JudgeMoveTest, ASlowdownThatAllShareIsNotTheMovesDoing) {
  seen.moved = {24 * kMbit, 12 * kMbit};
  untouched = {{24 * kMbit, 12 * kMbit}, {20 * kMbit, 10 * kMbit}, {30 * kMbit, 15 * kMbit}};
  EXPECT_EQ(judge().verdict, Verdict::kVerified);
}

TEST_F(JudgeMoveTest, AGainThatAllShareDoesNotHideALoss) {
  seen.moved = {10 * kMbit, 10 * kMbit};
  untouched = {{10 * kMbit, 20 * kMbit}};
  EXPECT_EQ(judge().verdict, Verdict::kWorse);
}

TEST_F(JudgeMoveTest, AnIdleFlowSaysNothing) {
  seen.moved.after_bps = 0;
  EXPECT_EQ(judge().verdict, Verdict::kInconclusive);
}

TEST_F(JudgeMoveTest, AFlowThatStoppedAloneIsDoubted) {
  seen.moved.after_bps = 0;
  untouched = {{24 * kMbit, 24 * kMbit}};
  const auto judgement = judge();
  EXPECT_EQ(judgement.verdict, Verdict::kInconclusive);
  EXPECT_TRUE(judgement.doubt_knowledge);
}

TEST_F(JudgeMoveTest, APausingJobSaysNothing) {
  seen.moved = {24 * kMbit, 1 * kMbit};
  untouched = {{24 * kMbit, 0}, {24 * kMbit, 0}, {24 * kMbit, 24 * kMbit}};
  EXPECT_EQ(judge().verdict, Verdict::kInconclusive);
}

TEST_F(JudgeMoveTest, AFlowThatHadNothingIsVerifiedOnceItRuns) {
  seen.moved = {0, 10 * kMbit};
  EXPECT_EQ(judge().verdict, Verdict::kVerified);
}

TEST_F(JudgeMoveTest, AnotherPathThanPlannedIsWorseWhateverTheRate) {
  seen.path_as_planned = false;
  const auto judgement = judge();
  EXPECT_EQ(judgement.verdict, Verdict::kWorse);
  EXPECT_TRUE(judgement.doubt_knowledge);
}

TEST_F(JudgeMoveTest, NothingIsSaidBeforeThePortIsSeen) {
  seen.port_seen = std::nullopt;
  EXPECT_EQ(judge().verdict, Verdict::kInconclusive);
  seen.port_seen = false;
  EXPECT_EQ(judge().verdict, Verdict::kInconclusive);
}

TEST(MoveState, AGoodMoveGoesFromProposedToVerified) {
  auto state = std::optional(MoveState::kProposed);
  for (const MoveEvent event : {MoveEvent::kSend, MoveEvent::kProgram, MoveEvent::kVerify}) {
    state = next_state(*state, event);
    ASSERT_TRUE(state);
  }
  EXPECT_EQ(state, MoveState::kVerified);
}

TEST(MoveState, RefusesWhatMayNotHappen) {
  EXPECT_FALSE(next_state(MoveState::kProposed, MoveEvent::kVerify));
  EXPECT_FALSE(next_state(MoveState::kFailed, MoveEvent::kSend));
}

TEST(MoveState, HasNoStateAndEventTwice) {
  for (std::size_t i = 0; i < kMoveTransitions.size(); ++i) {
    for (std::size_t j = 0; j < i; ++j) {
      EXPECT_FALSE(kMoveTransitions[i].state == kMoveTransitions[j].state &&
                   kMoveTransitions[i].event == kMoveTransitions[j].event);
    }
  }
}

TEST(MoveState, EndsWhereItShould) {
  EXPECT_TRUE(is_final(MoveState::kRolledBack));
  EXPECT_TRUE(is_final(MoveState::kFailed));
  EXPECT_TRUE(is_final(MoveState::kSuperseded));
  EXPECT_FALSE(is_final(MoveState::kVerified));
}

TEST(MoveState, ReadsBackWhatItWrites) {
  for (const MoveTransition& row : kMoveTransitions) EXPECT_EQ(parse_move_state(to_string(row.next)), row.next);
  EXPECT_FALSE(parse_move_state("lost"));
}

TEST(CoolDown, AFlowThatWasNotMovedIsFree) { EXPECT_EQ(CoolDown(100).left_ns("a", 5), 0); }

TEST(CoolDown, HoldsAFlowForThePeriodAfterAMove) {
  CoolDown cool_down(100);
  cool_down.moved("a", 1000);
  EXPECT_EQ(cool_down.left_ns("a", 1040), 60);
  EXPECT_EQ(cool_down.left_ns("a", 1100), 0);
  EXPECT_EQ(cool_down.left_ns("b", 1040), 0);
}

TEST(CoolDown, DoublesWithEachRollBackInARow) {
  CoolDown cool_down(100);
  cool_down.rolled_back("a", 0);
  EXPECT_EQ(cool_down.left_ns("a", 0), 200);
  cool_down.rolled_back("a", 200);
  EXPECT_EQ(cool_down.left_ns("a", 200), 400);
}

TEST(CoolDown, HasALongestPeriod) {
  CoolDown cool_down(100);
  for (int i = 0; i < 40; ++i) cool_down.rolled_back("a", 0);
  EXPECT_EQ(cool_down.left_ns("a", 0), 6400);
}

TEST(CoolDown, AVerifiedMoveEndsTheRow) {
  CoolDown cool_down(100);
  cool_down.rolled_back("a", 0);
  cool_down.verified("a");
  cool_down.moved("a", 1000);
  EXPECT_EQ(cool_down.left_ns("a", 1000), 100);
}

TEST(CoolDown, ForgetsFlowsLongFree) {
  CoolDown cool_down(100);
  cool_down.moved("a", 0);
  cool_down.prune(6499);
  EXPECT_EQ(cool_down.size(), 1U);
  cool_down.prune(6500);
  EXPECT_EQ(cool_down.size(), 0U);
}

}  // namespace
}  // namespace te::traffic
