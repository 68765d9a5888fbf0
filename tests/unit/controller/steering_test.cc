// SPDX-License-Identifier: Apache-2.0
#include "te-controller/engine/steering.h"

#include <gtest/gtest.h>

#include "te-controller/engine/ledger.h"
#include "te-controller/engine/switch_budget.h"

namespace te {
namespace {

const std::set<std::string> kBoth{"h1", "h2"};

SteeringKey key(std::uint32_t qpn) {
  return {.flow = {.source = *IpAddress::parse("10.0.0.1"),
                   .destination = *IpAddress::parse("10.0.0.2"),
                   .destination_qpn = qpn},
          .ifindex = 2};
}

v1::Hello hello_with(std::uint32_t qpn, std::uint32_t port) {
  v1::Hello hello;
  v1::SteeringEntry& entry = *hello.add_steering();
  *entry.mutable_key() = make_flow_key(key(qpn).flow, 2);
  entry.set_port(port);
  return hello;
}

TEST(Steering, AdoptsWhatIsInForceAndSendsNothing) {
  Steering steering(100);
  ASSERT_TRUE(steering.connected("h1", hello_with(1, 0xC001)));
  EXPECT_EQ(steering.desired("h1", key(1)), 0xC001);
  EXPECT_TRUE(steering.take_outgoing(kBoth).empty());
  EXPECT_EQ(steering.take_changes().size(), 1U);
}

TEST(Steering, SendsTheWholeSetWithAGrowingRevision) {
  Steering steering(100);
  ASSERT_TRUE(steering.connected("h1", hello_with(1, 0xC001)));
  steering.set("h1", key(2), 0xC002);
  auto out = steering.take_outgoing(kBoth);
  ASSERT_EQ(out.size(), 1U);
  EXPECT_EQ(out[0].message.steering().entries_size(), 2);
  const auto first = out[0].message.steering().revision();
  EXPECT_GE(first, 100U);
  steering.erase("h1", key(1));
  out = steering.take_outgoing(kBoth);
  ASSERT_EQ(out.size(), 1U);
  EXPECT_EQ(out[0].message.steering().entries_size(), 1);
  EXPECT_GT(out[0].message.steering().revision(), first);
  EXPECT_EQ(steering.revision("h1"), out[0].message.steering().revision());
}

TEST(Steering, WaitsForANodeThatIsAway) {
  Steering steering(100);
  ASSERT_TRUE(steering.connected("h1", {}));
  steering.set("h1", key(1), 0xC001);
  EXPECT_TRUE(steering.take_outgoing({"h2"}).empty());
  ASSERT_TRUE(steering.connected("h1", {}));
  EXPECT_EQ(steering.take_outgoing(kBoth).size(), 1U);
}

TEST(Steering, RestoresWhatAnAgentLostInThisRunButNotAfterARestart) {
  Steering steering(100);
  ASSERT_TRUE(steering.connected("h1", {}));
  steering.set("h1", key(1), 0xC001);
  (void)steering.take_outgoing(kBoth);
  ASSERT_TRUE(steering.connected("h1", {}));  // the agent came back without it
  EXPECT_EQ(steering.take_outgoing(kBoth).size(), 1U);
  Steering restarted(200);
  restarted.restore(steering.take_changes());
  EXPECT_EQ(restarted.desired("h1", key(1)), 0xC001);
  ASSERT_TRUE(restarted.connected("h1", {}));
  EXPECT_TRUE(restarted.take_outgoing(kBoth).empty());
  EXPECT_FALSE(restarted.desired("h1", key(1)));
}

TEST(Steering, ClearAllReachesNodesThatConnectLater) {
  Steering steering(100);
  ASSERT_TRUE(steering.connected("h1", hello_with(1, 0xC001)));
  steering.clear_all();
  EXPECT_EQ(steering.take_outgoing(kBoth).size(), 1U);
  ASSERT_TRUE(steering.connected("h2", hello_with(5, 0xC005)));
  const auto out = steering.take_outgoing(kBoth);
  ASSERT_EQ(out.size(), 1U);
  EXPECT_EQ(out[0].node, "h2");
  EXPECT_EQ(out[0].message.steering().entries_size(), 0);
}

TEST(Steering, RefusesAMalformedHello) {
  Steering steering(100);
  EXPECT_FALSE(steering.connected("h1", hello_with(1, 80)));
  EXPECT_FALSE(steering.connected("h1", hello_with(0x1000000, 0xC001)));
}

TEST(Ledger, SupersedesWhatAnEarlierRunLeftUnderWay) {
  std::vector<v1::MoveView> moves(2);
  moves[0].set_number(6);
  moves[0].set_state("verified");
  moves[1].set_number(7);
  moves[1].set_state("programmed");
  Ledger ledger;
  ledger.restore(moves);
  EXPECT_EQ(ledger.find(6)->state(), "verified");
  EXPECT_EQ(ledger.find(7)->state(), "superseded");
  EXPECT_EQ(ledger.add({}), 8);
}

TEST(Ledger, IgnoresEventsThatDoNotFitTheState) {
  Ledger ledger;
  const int number = ledger.add({});
  ledger.apply(number, traffic::MoveEvent::kVerify, "too early");
  EXPECT_EQ(ledger.find(number)->state(), "proposed");
  EXPECT_EQ(ledger.find(number)->outcome(), "");
}

TEST(SwitchBudget, LetsNoMoreThroughThanItsRateAfterTheBurst) {
  SwitchBudget budget(100);
  const std::vector<SwitchCost> cost{{.node = 1, .answers = 1}};
  int taken = 0;
  for (std::int64_t ms = 0; ms < 2000; ++ms) taken += budget.take(cost, ms * 1'000'000) ? 1 : 0;
  EXPECT_NEAR(taken, 225, 2);
}

TEST(SwitchBudget, PaysBackWhatRetriesTook) {
  SwitchBudget budget(100);
  const std::vector<SwitchCost> cost{{.node = 1, .answers = 1}};
  budget.charge(std::vector<SwitchCost>{{.node = 1, .answers = 75}}, 0);
  EXPECT_FALSE(budget.take(cost, 500'000'000));
  EXPECT_TRUE(budget.take(cost, 520'000'000));
}

TEST(SwitchBudget, LetsAnExpensiveRequestThroughOnceTheBucketIsFull) {
  SwitchBudget budget(1);
  const std::vector<SwitchCost> cost{{.node = 1, .answers = 100}};
  EXPECT_TRUE(budget.take(cost, 0));
  EXPECT_FALSE(budget.take(cost, 1'000'000'000));
}

}  // namespace
}  // namespace te
