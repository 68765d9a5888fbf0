// SPDX-License-Identifier: Apache-2.0
#include "host-agent/core/flow_table.h"

#include <gtest/gtest.h>

#include "tests/unit/agent/samples.h"

namespace te::agent {
namespace {

using test::sample;

constexpr auto kClose = FlowTable::Window::kClose;
constexpr auto kKeep = FlowTable::Window::kKeep;

void read(FlowTable& table, std::vector<FlowSample> samples, std::int64_t now_ns, FlowTable::Window window = kClose) {
  table.update(samples, window, now_ns);
}

TEST(FlowTable, RateIsTakenOverTheClosedWindow) {
  FlowTable table;
  read(table, {sample(7, 100)}, 0);
  read(table, {sample(7, 150)}, 500 * kMs);
  const FlowRecord& flow = *table.find(sample(7, 0).key);
  EXPECT_DOUBLE_EQ(flow.rate_bps, 50 * 1000 * 8 / 0.5);
  EXPECT_DOUBLE_EQ(flow.payload_bps, 50 * 900 * 8 / 0.5);
  EXPECT_EQ(table.window_ns(), 500 * kMs);
}

TEST(FlowTable, CountersAdoptedFromAnEarlierAgentGiveNoRate) {
  FlowTable table;
  read(table, {}, 0);
  FlowTable restarted;
  read(restarted, {sample(7, 1'000'000)}, kSecond);
  read(restarted, {sample(7, 1'000'000)}, 2 * kSecond);
  EXPECT_EQ(restarted.find(sample(7, 0).key)->rate_bps, 0);
}

TEST(FlowTable, FlowThatAppearsLaterHasARateAtOnce) {
  FlowTable table;
  read(table, {}, 0);
  read(table, {sample(7, 10)}, kSecond);
  EXPECT_DOUBLE_EQ(table.find(sample(7, 0).key)->rate_bps, 80000);
}

TEST(FlowTable, EarlyReadingMovesTotalsAndPortsButNotRates) {
  FlowTable table;
  read(table, {sample(7, 0)}, 0);
  read(table, {sample(7, 10)}, kSecond);
  FlowSample moved = sample(7, 12);
  moved.wire_port = 60000;
  read(table, {moved}, kSecond + 10 * kMs, kKeep);
  const FlowRecord& flow = *table.find(moved.key);
  EXPECT_EQ(flow.wire_port, 60000);
  EXPECT_EQ(flow.totals.packets, 12U);
  EXPECT_DOUBLE_EQ(flow.rate_bps, 80000);
}

TEST(FlowTable, EarlyReadingDoesNotShortenTheWindow) {
  FlowTable table;
  read(table, {sample(7, 0)}, 0);
  read(table, {sample(7, 9)}, 900 * kMs, kKeep);
  read(table, {sample(7, 10)}, kSecond);
  EXPECT_DOUBLE_EQ(table.find(sample(7, 0).key)->rate_bps, 80000);
}

TEST(FlowTable, TotalsGoOnWhenTheKernelEntryIsMadeAnew) {
  FlowTable table;
  read(table, {sample(7, 100)}, 0);
  read(table, {sample(7, 30)}, kSecond);
  EXPECT_EQ(table.find(sample(7, 0).key)->totals.packets, 130U);
  EXPECT_DOUBLE_EQ(table.find(sample(7, 0).key)->rate_bps, 30 * 8000);
  read(table, {sample(7, 40)}, 2 * kSecond);
  EXPECT_EQ(table.find(sample(7, 0).key)->totals.packets, 140U);
}

TEST(FlowTable, AnySingleCounterGoingBackMeansANewKernelEntry) {
  FlowTable table;
  FlowSample before = sample(7, 10);
  before.counters.nak_sequence = 3;
  read(table, {before}, 0);
  read(table, {sample(7, 20)}, kSecond);
  EXPECT_EQ(table.find(before.key)->totals.nak_sequence, 3U);
  EXPECT_EQ(table.find(before.key)->totals.packets, 30U);
}

TEST(FlowTable, FlowWithoutPacketsForTheIdleTimeIsIdle) {
  FlowTable table({.idle_ns = 60 * kSecond});
  read(table, {sample(7, 1)}, 0);
  read(table, {sample(7, 1)}, 59 * kSecond);
  EXPECT_TRUE(table.idle(59 * kSecond).empty());
  EXPECT_EQ(table.idle(60 * kSecond), std::vector{sample(7, 0).key});
}

TEST(FlowTable, APacketEndsTheIdleTime) {
  FlowTable table({.idle_ns = 60 * kSecond});
  read(table, {sample(7, 1)}, 0);
  read(table, {sample(7, 2)}, 30 * kSecond);
  EXPECT_TRUE(table.idle(89 * kSecond).empty());
}

TEST(FlowTable, SteeredFlowIsNeverIdle) {
  FlowTable table({.idle_ns = kSecond});
  FlowSample steered = sample(7, 1);
  steered.steer_port = 60000;
  read(table, {steered}, 0);
  EXPECT_TRUE(table.idle(100 * kSecond).empty());
}

TEST(FlowTable, SteeredFlowThatFallsSilentIsNamed) {
  FlowTable table;
  FlowSample steered = test::sample(7, 1);
  steered.steer_port = 60000;
  read(table, {steered, sample(8, 1)}, 0);
  EXPECT_TRUE(table.steered_and_silent(10 * kSecond, 9 * kSecond).empty());
  EXPECT_EQ(table.steered_and_silent(10 * kSecond, 10 * kSecond), std::vector{steered.key});
  ++steered.counters.packets;
  read(table, {steered, sample(8, 1)}, 10 * kSecond);
  EXPECT_TRUE(table.steered_and_silent(10 * kSecond, 19 * kSecond).empty());
}

TEST(FlowTable, EndedFlowIsReportedOnceMore) {
  FlowTable table;
  read(table, {sample(7, 1)}, 0);
  table.mark_reported();
  table.end(sample(7, 0).key);
  const auto changes = table.changes(false);
  ASSERT_EQ(changes.size(), 1U);
  EXPECT_TRUE(changes[0].ended);
  EXPECT_EQ(changes[0].rate_bps, 0);
  table.mark_reported();
  EXPECT_TRUE(table.changes(false).empty());
}

TEST(FlowTable, OneMissedReadingDoesNotEndAFlow) {
  FlowTable table;
  read(table, {sample(7, 1)}, 0);
  read(table, {}, kSecond);
  EXPECT_NE(table.find(sample(7, 0).key), nullptr);
  read(table, {}, 2 * kSecond);
  EXPECT_EQ(table.find(sample(7, 0).key), nullptr);
}

TEST(FlowTable, OnlyWhatChangedIsReported) {
  FlowTable table;
  read(table, {sample(7, 1), sample(8, 1)}, 0);
  EXPECT_EQ(table.changes(false).size(), 2U);
  table.mark_reported();
  read(table, {sample(7, 1), sample(8, 2)}, kSecond);
  const auto changes = table.changes(false);
  ASSERT_EQ(changes.size(), 1U);
  EXPECT_EQ(changes[0].key.destination_qpn, 8U);
}

TEST(FlowTable, FlowThatFallsSilentIsReportedWithRateZeroAndThenNoMore) {
  FlowTable table;
  read(table, {sample(7, 0)}, 0);
  read(table, {sample(7, 10)}, kSecond);
  table.mark_reported();
  read(table, {sample(7, 10)}, 2 * kSecond);
  ASSERT_EQ(table.changes(false).size(), 1U);
  EXPECT_EQ(table.changes(false)[0].rate_bps, 0);
  table.mark_reported();
  read(table, {sample(7, 10)}, 3 * kSecond);
  EXPECT_TRUE(table.changes(false).empty());
}

TEST(FlowTable, UnsentChangesStayUntilMarked) {
  FlowTable table;
  read(table, {sample(7, 1)}, 0);
  EXPECT_EQ(table.changes(false).size(), 1U);
  EXPECT_EQ(table.changes(false).size(), 1U);
}

TEST(FlowTable, CompleteReportListsTheUnchangedToo) {
  FlowTable table;
  read(table, {sample(7, 1), sample(8, 1)}, 0);
  table.mark_reported();
  EXPECT_EQ(table.changes(true).size(), 2U);
}

TEST(FlowTable, FlowsBeyondTheLimitAreCountedAndLeftOut) {
  FlowTable table({.flows = 1});
  read(table, {sample(7, 1), sample(8, 1)}, 0);
  EXPECT_EQ(table.size(), 1U);
  EXPECT_EQ(table.left_out(), 1U);
}

TEST(FlowTable, ShortLivedFlowsThatNobodyHearsOfLeaveABoundedTable) {
  constexpr std::uint32_t kFlows = 10'000;
  FlowTable table({.flows = 2 * kFlows});
  for (std::uint32_t generation = 0; generation < 20; ++generation) {
    std::vector<FlowSample> samples;
    for (std::uint32_t i = 0; i < kFlows; ++i) samples.push_back(sample(generation * kFlows + i, 1));
    read(table, samples, generation * kSecond);
    EXPECT_LE(table.size(), 2 * kFlows);
  }
  EXPECT_LE(table.changes(false).size(), 4 * kFlows) << "live ones, and ended ones that wait to be told";
  EXPECT_GT(table.left_out(), 0U) << "the rest is counted";
}

TEST(FlowTable, PairingIsPartOfTheRecord) {
  FlowTable table;
  read(table, {sample(7, 1)}, 0);
  table.mark_reported();
  table.set_qpns(sample(7, 0).key, 100, 7);
  ASSERT_EQ(table.changes(false).size(), 1U);
  EXPECT_EQ(table.changes(false)[0].local_qpn, 100U);
}

TEST(FlowTable, GenerationMovesWhenAFlowAppearsOrEnds) {
  FlowTable table;
  read(table, {sample(7, 1)}, 0);
  const auto first = table.generation();
  read(table, {sample(7, 2)}, kSecond);
  EXPECT_EQ(table.generation(), first);
  table.end(sample(7, 0).key);
  EXPECT_NE(table.generation(), first);
}

}  // namespace
}  // namespace te::agent
