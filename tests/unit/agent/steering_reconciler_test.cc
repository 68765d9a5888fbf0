// SPDX-License-Identifier: Apache-2.0
#include "host-agent/core/steering_reconciler.h"

#include <gtest/gtest.h>

#include "tests/unit/agent/samples.h"

namespace te::agent {
namespace {

Steering steer(std::uint32_t qpn, std::uint16_t port) { return {test::sample(qpn, 0).key, port}; }

FlowSample held(std::uint32_t qpn, std::uint16_t port) {
  FlowSample made = test::sample(qpn, 1);
  made.steer_port = port;
  return made;
}

using Actions = std::vector<Steering>;

TEST(SteeringReconciler, WithoutAWishNothingIsTouched) {
  SteeringReconciler reconciler;
  reconciler.observe(std::vector{held(7, 60000)});
  EXPECT_TRUE(reconciler.due(0).empty());
  EXPECT_EQ(reconciler.programmed(), Actions{steer(7, 60000)});
}

TEST(SteeringReconciler, SetsWhatIsMissingAndClearsWhatIsNotListed) {
  SteeringReconciler reconciler;
  reconciler.observe(std::vector{held(7, 60000)});
  ASSERT_TRUE(reconciler.want(1, Actions{steer(8, 50000)}));
  EXPECT_EQ(reconciler.due(0), (Actions{steer(7, 0), steer(8, 50000)}));
}

TEST(SteeringReconciler, WhatIsAlreadySoNeedsNoAction) {
  SteeringReconciler reconciler;
  reconciler.observe(std::vector{held(7, 60000)});
  ASSERT_TRUE(reconciler.want(1, Actions{steer(7, 60000)}));
  EXPECT_TRUE(reconciler.due(0).empty());
}

TEST(SteeringReconciler, AnotherPortIsOneAction) {
  SteeringReconciler reconciler;
  reconciler.observe(std::vector{held(7, 60000)});
  ASSERT_TRUE(reconciler.want(1, Actions{steer(7, 60001)}));
  EXPECT_EQ(reconciler.due(0), Actions{steer(7, 60001)});
}

TEST(SteeringReconciler, DoneActionIsProgrammed) {
  SteeringReconciler reconciler;
  ASSERT_TRUE(reconciler.want(1, Actions{steer(7, 60000)}));
  reconciler.done(steer(7, 60000), {}, 0);
  EXPECT_EQ(reconciler.programmed(), Actions{steer(7, 60000)});
  EXPECT_TRUE(reconciler.due(0).empty());
}

TEST(SteeringReconciler, EmptySetLetsAllGo) {
  SteeringReconciler reconciler;
  reconciler.observe(std::vector{held(7, 60000)});
  ASSERT_TRUE(reconciler.want(1, Actions{}));
  EXPECT_EQ(reconciler.due(0), Actions{steer(7, 0)});
  reconciler.done(steer(7, 0), {}, 0);
  EXPECT_TRUE(reconciler.programmed().empty());
}

TEST(SteeringReconciler, FailureIsTriedAgainAfterABackOffThatGrows) {
  SteeringReconciler reconciler({.retry_first_ns = 100 * kMs, .retry_most_ns = kSecond});
  ASSERT_TRUE(reconciler.want(1, Actions{steer(7, 60000)}));
  reconciler.done(steer(7, 60000), Error{"map full"}, 0);
  EXPECT_TRUE(reconciler.due(99 * kMs).empty());
  EXPECT_EQ(reconciler.retry_at(), 100 * kMs);
  EXPECT_EQ(reconciler.due(100 * kMs).size(), 1U);
  reconciler.done(steer(7, 60000), Error{"map full"}, 100 * kMs);
  EXPECT_EQ(reconciler.retry_at(), 300 * kMs);
}

TEST(SteeringReconciler, FailureIsToldWithItsReason) {
  SteeringReconciler reconciler;
  ASSERT_TRUE(reconciler.want(1, Actions{steer(7, 60000)}));
  reconciler.done(steer(7, 60000), Error{"map full"}, 0);
  ASSERT_EQ(reconciler.problems().size(), 1U);
  EXPECT_EQ(reconciler.problems()[0].reason, "map full");
}

TEST(SteeringReconciler, FlowThatAppearsIsWorkedOnAtOnce) {
  SteeringReconciler reconciler;
  reconciler.observe({});
  ASSERT_TRUE(reconciler.want(1, Actions{steer(7, 60000)}));
  reconciler.done(steer(7, 60000), Error{"no such flow"}, 0);
  reconciler.observe({});
  EXPECT_TRUE(reconciler.due(1).empty());
  reconciler.observe(std::vector{test::sample(7, 1)});
  EXPECT_EQ(reconciler.due(1), Actions{steer(7, 60000)});
}

TEST(SteeringReconciler, FlowThatStaysDoesNotShortenTheBackOff) {
  SteeringReconciler reconciler;
  ASSERT_TRUE(reconciler.want(1, Actions{steer(7, 60000)}));
  reconciler.observe(std::vector{test::sample(7, 1)});
  reconciler.done(steer(7, 60000), Error{"refused"}, 0);
  reconciler.observe(std::vector{test::sample(7, 2)});
  EXPECT_TRUE(reconciler.due(1).empty());
}

TEST(SteeringReconciler, NewWishForAFlowIsNotHeldBackByTheOldFailure) {
  SteeringReconciler reconciler;
  ASSERT_TRUE(reconciler.want(1, Actions{steer(7, 60000)}));
  reconciler.done(steer(7, 60000), Error{"map full"}, 0);
  ASSERT_TRUE(reconciler.want(2, Actions{steer(7, 60001)}));
  EXPECT_EQ(reconciler.due(1), Actions{steer(7, 60001)});
  EXPECT_TRUE(reconciler.problems().empty());
}

TEST(SteeringReconciler, FullReadingRepairsWhatSomebodyElseChanged) {
  SteeringReconciler reconciler;
  ASSERT_TRUE(reconciler.want(1, Actions{steer(7, 60000)}));
  reconciler.done(steer(7, 60000), {}, 0);
  reconciler.observe(std::vector{held(7, 0)});
  EXPECT_EQ(reconciler.due(0), Actions{steer(7, 60000)});
}

TEST(SteeringReconciler, OlderRevisionOfASessionIsIgnored) {
  SteeringReconciler reconciler;
  ASSERT_TRUE(reconciler.want(5, Actions{steer(7, 60000)}));
  EXPECT_FALSE(reconciler.want(4, Actions{}));
  EXPECT_EQ(reconciler.revision(), 5U);
  EXPECT_TRUE(reconciler.wants(steer(7, 0).key));
}

TEST(SteeringReconciler, FirstSetOfANewSessionCountsWhateverItsRevision) {
  SteeringReconciler reconciler;
  ASSERT_TRUE(reconciler.want(5, Actions{steer(7, 60000)}));
  reconciler.begin_session();
  EXPECT_TRUE(reconciler.want(1, Actions{}));
  EXPECT_EQ(reconciler.revision(), 1U);
}

TEST(SteeringReconciler, SessionThatEndsKeepsTheWish) {
  SteeringReconciler reconciler;
  ASSERT_TRUE(reconciler.want(5, Actions{steer(7, 60000)}));
  reconciler.begin_session();
  EXPECT_TRUE(reconciler.wants(steer(7, 0).key));
}

TEST(SteeringReconciler, ImpossibleEntriesAreProblemsAndTheRestIsDone) {
  SteeringReconciler reconciler;
  ASSERT_TRUE(reconciler.want(1, Actions{steer(7, 4791), steer(8, 50000), steer(8, 50001)}));
  EXPECT_EQ(reconciler.due(0), Actions{steer(8, 50000)});
  EXPECT_EQ(reconciler.problems().size(), 2U);
}

TEST(SteeringReconciler, SetBeyondTheLimitIsCut) {
  SteeringReconciler reconciler({.entries = 1});
  ASSERT_TRUE(reconciler.want(1, Actions{steer(7, 50000), steer(8, 50000)}));
  EXPECT_EQ(reconciler.due(0).size(), 1U);
  EXPECT_EQ(reconciler.problems().size(), 1U);
}

/// What the kernel holds of flow 7, which has sent so many packets.
std::vector<FlowSample> flow7(std::uint16_t port, std::uint64_t packets) {
  FlowSample made = test::sample(7, packets);
  made.steer_port = port;
  return {made};
}

TEST(SteeringReconciler, ReleasedEntryIsLetGoWithoutAController) {
  SteeringReconciler reconciler;
  reconciler.observe(std::vector{held(7, 60000), held(8, 60000)});
  EXPECT_TRUE(reconciler.release(steer(7, 0).key, {"idle", true}));
  EXPECT_FALSE(reconciler.release(steer(7, 0).key, {"idle", true})) << "once";
  EXPECT_FALSE(reconciler.release(steer(9, 0).key, {"idle", true})) << "not steered";
  EXPECT_EQ(reconciler.due(0), Actions{steer(7, 0)});
  reconciler.done(steer(7, 0), {}, 0);
  EXPECT_TRUE(reconciler.due(0).empty());
}

TEST(SteeringReconciler, ReleasedEntryStaysAwayWhileTheControllerWantsTheSame) {
  SteeringReconciler reconciler;
  reconciler.observe(flow7(60000, 5));
  ASSERT_TRUE(reconciler.want(1, Actions{steer(7, 60000)}));
  ASSERT_TRUE(reconciler.release(steer(7, 0).key, {"reused", false}));
  EXPECT_FALSE(reconciler.wants(steer(7, 0).key));
  reconciler.done(steer(7, 0), {}, 0);
  ASSERT_TRUE(reconciler.want(2, Actions{steer(7, 60000)}));
  reconciler.observe(flow7(0, 6));
  reconciler.observe(flow7(0, 7));
  EXPECT_TRUE(reconciler.due(0).empty());
  ASSERT_EQ(reconciler.problems().size(), 1U);
  EXPECT_EQ(reconciler.problems()[0].reason, "reused");
  ASSERT_TRUE(reconciler.want(3, Actions{steer(7, 60001)}));
  EXPECT_EQ(reconciler.due(0), Actions{steer(7, 60001)});
  EXPECT_TRUE(reconciler.problems().empty());
}

TEST(SteeringReconciler, ReleaseEndsWithTheWish) {
  SteeringReconciler reconciler;
  reconciler.observe(flow7(60000, 5));
  ASSERT_TRUE(reconciler.want(1, Actions{steer(7, 60000)}));
  ASSERT_TRUE(reconciler.release(steer(7, 0).key, {"reused", false}));
  reconciler.done(steer(7, 0), {}, 0);
  ASSERT_TRUE(reconciler.want(2, Actions{}));
  ASSERT_TRUE(reconciler.want(3, Actions{steer(7, 60000)}));
  EXPECT_EQ(reconciler.due(0), Actions{steer(7, 60000)});
}

TEST(SteeringReconciler, IdleEntryComesBackWhenTheFlowSends) {
  SteeringReconciler reconciler;
  reconciler.observe(flow7(60000, 5));
  ASSERT_TRUE(reconciler.want(1, Actions{steer(7, 60000)}));
  ASSERT_TRUE(reconciler.release(steer(7, 0).key, {"idle", true}));
  reconciler.done(steer(7, 0), {}, 0);
  reconciler.observe(flow7(0, 5));
  EXPECT_TRUE(reconciler.due(0).empty());
  reconciler.observe({});  // erased from the kernel
  reconciler.observe(flow7(0, 1));
  EXPECT_EQ(reconciler.due(0), Actions{steer(7, 60000)});
}

TEST(SteeringReconciler, GenerationTellsWhenThereIsSomethingToReport) {
  SteeringReconciler reconciler;
  const auto before = reconciler.generation();
  reconciler.observe(std::vector{held(7, 60000)});
  const auto after = reconciler.generation();
  EXPECT_NE(before, after);
  reconciler.observe(std::vector{held(7, 60000)});
  EXPECT_EQ(reconciler.generation(), after);
}

}  // namespace
}  // namespace te::agent
