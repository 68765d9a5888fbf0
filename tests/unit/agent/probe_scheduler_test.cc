// SPDX-License-Identifier: Apache-2.0
#include "host-agent/core/probe_scheduler.h"

#include <gtest/gtest.h>

#include "tests/unit/agent/samples.h"

namespace te::agent {
namespace {

const IpAddress kSwitch = test::ip("10.9.9.9");

ProbeOrder order(std::vector<std::uint16_t> ports, std::vector<std::uint8_t> ttls) {
  ProbeOrder made;
  made.id = 5;
  made.flow = test::key("10.0.0.1", "10.0.0.2", 17);
  made.ports = std::move(ports);
  made.ttls = std::move(ttls);
  made.probes_per_s = 100;
  made.attempts = 2;
  made.timeout_ns = 200 * kMs;
  return made;
}

QuotedPacket quote_of(const Probe& probe) {
  return {probe.flow.source, probe.flow.destination, probe.port, probe.token, std::nullopt};
}

TEST(ProbeScheduler, SendsEachPortAtEachTtlAtThePaceAskedFor) {
  ProbeScheduler scheduler;
  ASSERT_TRUE(scheduler.start(order({50000, 50001}, {1, 2}), 0));
  std::vector<std::pair<int, int>> sent;
  for (std::int64_t now = 0; now < 40 * kMs; now += kMs) {
    while (const auto probe = scheduler.next(now)) sent.emplace_back(probe->port, probe->ttl);
  }
  EXPECT_EQ(sent, (std::vector<std::pair<int, int>>{{50000, 1}, {50000, 2}, {50001, 1}, {50001, 2}}));
}

TEST(ProbeScheduler, NothingIsDueBeforeItsPace) {
  ProbeScheduler scheduler;
  ASSERT_TRUE(scheduler.start(order({50000, 50001}, {1}), 0));
  ASSERT_TRUE(scheduler.next(0));
  EXPECT_FALSE(scheduler.next(9 * kMs));
  EXPECT_EQ(scheduler.wake_at(), 10 * kMs);
  EXPECT_TRUE(scheduler.next(10 * kMs));
}

TEST(ProbeScheduler, LateTimerCatchesUpButDoesNotBurst) {
  ProbeOrder fast = order(std::vector<std::uint16_t>(1000, 50000), {1});
  fast.probes_per_s = 1000;
  ProbeScheduler scheduler;
  ASSERT_TRUE(scheduler.start(fast, 0));
  int sent = 0;
  while (scheduler.next(kSecond)) ++sent;
  EXPECT_LE(sent, 12);
  EXPECT_GE(sent, 10);
}

TEST(ProbeScheduler, AnswerNamesTheResponder) {
  ProbeScheduler scheduler;
  ASSERT_TRUE(scheduler.start(order({50000}, {2}), 0));
  const auto probe = scheduler.next(0);
  ASSERT_TRUE(scheduler.answer(quote_of(*probe), kSwitch, 3 * kMs));
  const auto reports = scheduler.take_reports(3 * kMs);
  ASSERT_EQ(reports.size(), 1U);
  EXPECT_TRUE(reports[0].done);
  EXPECT_EQ(reports[0].sent, 1U);
  EXPECT_EQ(reports[0].lost, 0U);
  ASSERT_EQ(reports[0].outcomes.size(), 1U);
  EXPECT_EQ(reports[0].outcomes[0].responder, kSwitch);
  EXPECT_EQ(reports[0].outcomes[0].rtt_us, 3000U);
  EXPECT_EQ(reports[0].outcomes[0].attempts, 1U);
  EXPECT_TRUE(scheduler.idle());
}

TEST(ProbeScheduler, AnswerThatThereIsNoWayOnIsOneOfItsOwnKind) {
  ProbeScheduler scheduler;
  ASSERT_TRUE(scheduler.start(order({50000}, {2}), 0));
  const auto probe = scheduler.next(0);
  ASSERT_TRUE(scheduler.answer(quote_of(*probe), kSwitch, 3 * kMs, true));
  const auto reports = scheduler.take_reports(3 * kMs);
  ASSERT_EQ(reports.size(), 1U);
  EXPECT_TRUE(reports[0].done) << "it is not tried again";
  EXPECT_EQ(reports[0].outcomes.at(0).responder, kSwitch);
  EXPECT_TRUE(reports[0].outcomes.at(0).unreachable);
}

TEST(ProbeScheduler, OwnKernelThatHasNoWayOnIsNoAnswer) {
  ProbeScheduler scheduler;
  ASSERT_TRUE(scheduler.start(order({50000}, {2}), 0));
  const auto probe = scheduler.next(0);
  EXPECT_FALSE(scheduler.answer(quote_of(*probe), probe->flow.source, 3 * kMs, true));
  EXPECT_TRUE(scheduler.take_reports(3 * kMs).empty());
}

TEST(ProbeScheduler, TimeoutIsTriedAgain) {
  ProbeScheduler scheduler;
  ASSERT_TRUE(scheduler.start(order({50000}, {1}), 0));
  ASSERT_TRUE(scheduler.next(0));
  EXPECT_EQ(scheduler.wake_at(), 200 * kMs);
  EXPECT_TRUE(scheduler.take_reports(200 * kMs).empty());
  const auto again = scheduler.next(200 * kMs);
  ASSERT_TRUE(again);
  ASSERT_TRUE(scheduler.answer(quote_of(*again), kSwitch, 201 * kMs));
  const auto reports = scheduler.take_reports(201 * kMs);
  ASSERT_EQ(reports.size(), 1U);
  EXPECT_EQ(reports[0].outcomes[0].attempts, 2U);
  EXPECT_EQ(reports[0].sent, 2U);
  EXPECT_EQ(reports[0].lost, 1U);
}

TEST(ProbeScheduler, AfterTheLastAttemptNobodyAnswered) {
  ProbeScheduler scheduler;
  ASSERT_TRUE(scheduler.start(order({50000}, {1}), 0));
  ASSERT_TRUE(scheduler.next(0));
  scheduler.take_reports(200 * kMs);
  ASSERT_TRUE(scheduler.next(200 * kMs));
  const auto reports = scheduler.take_reports(400 * kMs);
  ASSERT_EQ(reports.size(), 1U);
  EXPECT_TRUE(reports[0].done);
  EXPECT_EQ(reports[0].lost, 2U);
  EXPECT_FALSE(reports[0].outcomes[0].responder.is_set());
}

TEST(ProbeScheduler, LateAnswerStillCountsAsAnAnswer) {
  ProbeScheduler scheduler;
  ASSERT_TRUE(scheduler.start(order({50000}, {1}), 0));
  const auto probe = scheduler.next(0);
  scheduler.take_reports(200 * kMs);
  EXPECT_TRUE(scheduler.answer(quote_of(*probe), kSwitch, 210 * kMs));
  const auto reports = scheduler.take_reports(210 * kMs);
  ASSERT_EQ(reports.size(), 1U);
  EXPECT_EQ(reports[0].outcomes[0].responder, kSwitch);
  EXPECT_EQ(reports[0].lost, 1U);
}

TEST(ProbeScheduler, SecondAnswerToAProbeIsRefused) {
  ProbeScheduler scheduler;
  ASSERT_TRUE(scheduler.start(order({50000, 50001}, {1}), 0));
  const auto probe = scheduler.next(0);
  EXPECT_TRUE(scheduler.answer(quote_of(*probe), kSwitch, 1));
  EXPECT_FALSE(scheduler.answer(quote_of(*probe), kSwitch, 2));
}

TEST(ProbeScheduler, AnswerThatQuotesAnotherPortOrAddressIsRefused) {
  ProbeScheduler scheduler;
  ASSERT_TRUE(scheduler.start(order({50000}, {1}), 0));
  const QuotedPacket good = quote_of(*scheduler.next(0));
  QuotedPacket other_port = good;
  other_port.source_port = 50001;
  QuotedPacket other_source = good;
  other_source.source = test::ip("10.0.0.9");
  QuotedPacket other_id = good;
  other_id.ip_id ^= 0x5555;
  for (const QuotedPacket& quote : {other_port, other_source, other_id}) {
    EXPECT_FALSE(scheduler.answer(quote, kSwitch, 1));
  }
  EXPECT_TRUE(scheduler.answer(good, kSwitch, 1));
}

TEST(ProbeScheduler, Ipv6AnswersMatchByPsn) {
  ProbeOrder v6 = order({50000}, {1});
  v6.flow = test::key("fd00::1", "fd00::2", 17);
  ProbeScheduler scheduler;
  ASSERT_TRUE(scheduler.start(v6, 0));
  const auto probe = scheduler.next(0);
  QuotedPacket quote{probe->flow.source, probe->flow.destination, probe->port, 0, std::nullopt};
  EXPECT_FALSE(scheduler.answer(quote, kSwitch, 1));
  quote.psn = 0x10000U | probe->token;
  EXPECT_FALSE(scheduler.answer(quote, kSwitch, 1));
  quote.psn = probe->token;
  EXPECT_TRUE(scheduler.answer(quote, kSwitch, 1));
}

TEST(ProbeScheduler, OutcomesOfALongOrderComeInParts) {
  ProbeScheduler scheduler;
  ASSERT_TRUE(scheduler.start(order({50000, 50001}, {1}), 0));
  scheduler.answer(quote_of(*scheduler.next(0)), kSwitch, 1);
  EXPECT_TRUE(scheduler.take_reports(kMs).empty());
  const auto part = scheduler.take_reports(60 * kMs);
  ASSERT_EQ(part.size(), 1U);
  EXPECT_FALSE(part[0].done);
  EXPECT_EQ(part[0].sent, 1U);
  scheduler.answer(quote_of(*scheduler.next(60 * kMs)), kSwitch, 61 * kMs);
  const auto last = scheduler.take_reports(61 * kMs);
  ASSERT_EQ(last.size(), 1U);
  EXPECT_TRUE(last[0].done);
  EXPECT_EQ(last[0].sent, 1U);
  EXPECT_EQ(last[0].outcomes.size(), 1U);
}

TEST(ProbeScheduler, OrdersAreServedInTurn) {
  ProbeScheduler scheduler;
  ProbeOrder second = order({60000, 60001}, {1});
  second.id = 6;
  ASSERT_TRUE(scheduler.start(order({50000, 50001}, {1}), 0));
  ASSERT_TRUE(scheduler.start(second, 0));
  const auto a = scheduler.next(0);
  const auto b = scheduler.next(0);
  ASSERT_TRUE(a && b);
  EXPECT_NE(a->order_id, b->order_id);
}

TEST(ProbeScheduler, CancelledOrderIsForgotten) {
  ProbeScheduler scheduler;
  ASSERT_TRUE(scheduler.start(order({50000}, {1}), 0));
  const auto probe = scheduler.next(0);
  scheduler.cancel(5);
  EXPECT_TRUE(scheduler.idle());
  EXPECT_FALSE(scheduler.answer(quote_of(*probe), kSwitch, 1));
  EXPECT_TRUE(scheduler.take_reports(kSecond).empty());
  EXPECT_EQ(scheduler.wake_at(), ProbeScheduler::kNever);
}

TEST(ProbeScheduler, OrderThatCannotBeSentFailsWithTheReason) {
  ProbeScheduler scheduler;
  ASSERT_TRUE(scheduler.start(order({50000}, {1}), 0));
  scheduler.next(0);
  scheduler.fail(5, "no route");
  const auto reports = scheduler.take_reports(0);
  ASSERT_EQ(reports.size(), 1U);
  EXPECT_TRUE(reports[0].done);
  EXPECT_EQ(reports[0].error, "no route");
}

TEST(ProbeScheduler, WhenNothingCanBeSentAnyMoreEveryOrderSaysWhy) {
  ProbeScheduler scheduler;
  for (const std::uint64_t id : {5U, 6U}) {
    ProbeOrder one = order({50000, 50001}, {1});
    one.id = id;
    ASSERT_TRUE(scheduler.start(one, 0));
  }
  scheduler.next(0);
  scheduler.fail_all("network namespace /run/netns/a ended");
  const auto reports = scheduler.take_reports(0);
  ASSERT_EQ(reports.size(), 2U);
  for (const ProbeReport& report : reports) {
    EXPECT_TRUE(report.done);
    EXPECT_EQ(report.error, "network namespace /run/netns/a ended");
  }
  EXPECT_TRUE(scheduler.idle());
  EXPECT_FALSE(scheduler.next(1));
}

TEST(ProbeScheduler, SenselessOrdersAreRefused) {
  ProbeScheduler scheduler;
  EXPECT_FALSE(scheduler.start(order({}, {1}), 0).ok());
  EXPECT_FALSE(scheduler.start(order({0}, {1}), 0).ok());
  EXPECT_FALSE(scheduler.start(order({50000}, {0}), 0).ok());
  EXPECT_FALSE(scheduler.start(order({50000}, {65}), 0).ok());
  ProbeOrder mixed = order({50000}, {1});
  mixed.flow.destination = test::ip("fd00::2");
  EXPECT_FALSE(scheduler.start(mixed, 0).ok());
  EXPECT_TRUE(scheduler.idle());
}

TEST(ProbeScheduler, SameIdTwiceIsRefused) {
  ProbeScheduler scheduler;
  ASSERT_TRUE(scheduler.start(order({50000}, {1}), 0));
  EXPECT_FALSE(scheduler.start(order({50000}, {1}), 0).ok());
}

TEST(ProbeScheduler, MoreThanItsLimitIsRefused) {
  ProbeScheduler scheduler;
  const std::vector<std::uint16_t> ports(ProbeScheduler::kMaxPending / 2, 50000);
  ASSERT_TRUE(scheduler.start(order(ports, {1, 2}), 0));
  ProbeOrder more = order({50000}, {1});
  more.id = 6;
  EXPECT_FALSE(scheduler.start(more, 0).ok());
  scheduler.cancel(5);
  EXPECT_TRUE(scheduler.start(more, 0).ok());
}

}  // namespace
}  // namespace te::agent
