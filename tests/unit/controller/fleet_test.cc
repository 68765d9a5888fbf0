// SPDX-License-Identifier: Apache-2.0
#include "te-controller/engine/fleet.h"

#include <gtest/gtest.h>

#include <cmath>

#include "tests/support/moments.h"
#include "topology/builder.h"

namespace te {
namespace {

class FleetTest : public ::testing::Test {
 protected:
  FleetTest() {
    v1::Hello hello;
    hello.set_protocol_version(1);
    EXPECT_TRUE(fleet_.connect("h1", hello, kStart));
    EXPECT_TRUE(fleet_.connect("h2", hello, kStart));
  }
  static v1::FlowUpdate update(v1::Direction direction, double payload_bps, std::uint32_t port = 50000) {
    v1::FlowUpdate all;
    all.set_interval_ms(500);
    v1::FlowReport& report = *all.add_flows();
    *report.mutable_key() = make_flow_key(kFlow, 3);
    report.set_direction(direction);
    report.set_source_port(port);
    report.set_wire_port(port);
    report.set_rate_bps(payload_bps * 1.02 + 1000);
    report.set_payload_bps(payload_bps);
    return all;
  }
  static inline const FlowId kFlow{.source = *IpAddress::parse("10.1.1.2"),
                                   .destination = *IpAddress::parse("10.1.2.2"),
                                   .destination_qpn = 0x123456};

  Fabric fabric_ = build_clos({.leaves = 1, .hosts_per_leaf = 3, .spines = 1});
  Fleet fleet_{fabric_};
};

TEST_F(FleetTest, AnUpdateMayNameAFlowAndItsEndWhileAnotherIsNotNamed) {
  v1::FlowUpdate two = update(v1::EGRESS, 1e6);
  *two.add_flows() = two.flows(0);
  two.mutable_flows(1)->mutable_key()->set_destination_qpn(7);
  ASSERT_TRUE(fleet_.apply("h1", two, kStart));
  v1::FlowUpdate then;
  then.set_interval_ms(500);
  then.set_complete(true);
  for (int i = 0; i < 2; ++i) *then.add_flows() = two.flows(1);
  then.mutable_flows(1)->set_ended(true);
  ASSERT_TRUE(fleet_.apply("h1", then, kStart + 500 * kMs));
  EXPECT_TRUE(fleet_.flows().empty());  // one ended, and the other is not on the complete list
}

TEST_F(FleetTest, RefusesWhoIsNoHostOfTheFabricOrSpeaksAnotherProtocol) {
  v1::Hello hello;
  hello.set_protocol_version(1);
  EXPECT_FALSE(fleet_.connect("leaf1", hello, kStart));
  EXPECT_FALSE(fleet_.connect("stranger", hello, kStart));
  hello.set_protocol_version(9);
  EXPECT_FALSE(fleet_.connect("h1", hello, kStart));
}

TEST_F(FleetTest, JoinsWhatSenderAndReceiverReportOfAFlow) {
  ASSERT_TRUE(fleet_.apply("h1", update(v1::EGRESS, 1e6), kStart));
  ASSERT_TRUE(fleet_.apply("h2", update(v1::INGRESS, 0.9e6), kStart));
  ASSERT_EQ(fleet_.flows().size(), 1U);
  const Flow& flow = fleet_.flows().begin()->second;
  EXPECT_TRUE(flow.egress && flow.ingress);
  EXPECT_EQ(flow.last_rates().payload_bps, 0.9e6);  // the receiver's, it is goodput
  EXPECT_EQ(flow.kind(kStart), FlowKind::kData);
}

TEST_F(FleetTest, TurnsDataIntoAcknowledgementsAndIdleWithTime) {
  ASSERT_TRUE(fleet_.apply("h1", update(v1::EGRESS, 1e6), kStart));
  const std::int64_t later = kStart + Flow::kRecentNs;
  ASSERT_TRUE(fleet_.apply("h1", update(v1::EGRESS, 0), later));
  const Flow& flow = fleet_.flows().begin()->second;
  EXPECT_EQ(flow.kind(later), FlowKind::kData);
  EXPECT_EQ(flow.kind(later + kMs), FlowKind::kAck);
  EXPECT_EQ(flow.kind(later + Flow::kRecentNs + kMs), FlowKind::kIdle);
}

TEST_F(FleetTest, PairsDirectionsWhenTheQpTableIsKnownAndLeavesThemUnknownOtherwise) {
  ASSERT_TRUE(fleet_.apply("h1", update(v1::EGRESS, 1e6), kStart));
  EXPECT_FALSE(fleet_.find(kFlow)->reverse());
  v1::FlowUpdate paired = update(v1::INGRESS, 1e6);
  paired.mutable_flows(0)->set_remote_qpn(0x77);
  ASSERT_TRUE(fleet_.apply("h2", paired, kStart));
  const auto reverse = fleet_.find(kFlow)->reverse();
  ASSERT_TRUE(reverse);
  EXPECT_EQ(*reverse, (FlowId{.source = kFlow.destination, .destination = kFlow.source, .destination_qpn = 0x77}));
}

TEST_F(FleetTest, EndsAFlowWhenBothSidesSaySo) {
  ASSERT_TRUE(fleet_.apply("h1", update(v1::EGRESS, 1e6), kStart));
  ASSERT_TRUE(fleet_.apply("h2", update(v1::INGRESS, 1e6), kStart));
  v1::FlowUpdate nothing;
  nothing.set_complete(true);
  auto change = fleet_.apply("h1", nothing, kStart + kMs);
  ASSERT_TRUE(change);
  EXPECT_TRUE(change->ended.empty());
  v1::FlowUpdate ended = update(v1::INGRESS, 0);
  ended.mutable_flows(0)->set_ended(true);
  change = fleet_.apply("h2", ended, kStart + kMs);
  ASSERT_TRUE(change);
  EXPECT_EQ(change->ended.size(), 1U);
  EXPECT_TRUE(fleet_.flows().empty());
}

TEST_F(FleetTest, KeepsRatesOfFlowsThatAnUpdateDoesNotName) {
  ASSERT_TRUE(fleet_.apply("h1", update(v1::EGRESS, 1e6), kStart));
  v1::FlowUpdate nothing;
  nothing.set_interval_ms(500);
  ASSERT_TRUE(fleet_.apply("h1", nothing, kStart + 500 * kMs));
  EXPECT_EQ(fleet_.find(kFlow)->last_rates().payload_bps, 1e6);
  EXPECT_EQ(fleet_.find(kFlow)->egress->history.size(), 2U);
}

TEST_F(FleetTest, TakesRepeatedRatesBetweenWindowsForNoNewSample) {
  ASSERT_TRUE(fleet_.apply("h1", update(v1::EGRESS, 1e6), kStart));
  const auto change = fleet_.apply("h1", update(v1::EGRESS, 1e6, 50001), kStart + 50 * kMs);
  ASSERT_TRUE(change);
  EXPECT_TRUE(change->ports);
  EXPECT_EQ(fleet_.find(kFlow)->wire_port(), 50001);
  EXPECT_EQ(fleet_.find(kFlow)->egress->history.size(), 1U);
}

TEST_F(FleetTest, LetsANodeSpeakOnlyForItsOwnAddresses) {
  ASSERT_TRUE(fleet_.apply("h2", update(v1::EGRESS, 1e6), kStart));
  EXPECT_TRUE(fleet_.flows().empty());
  EXPECT_EQ(fleet_.foreign_reports(), 1U);
}

TEST_F(FleetTest, RefusesMalformedReportsWhole) {
  v1::FlowUpdate wrong = update(v1::EGRESS, 1e6);
  wrong.add_flows()->mutable_key()->set_source("abc");
  EXPECT_FALSE(fleet_.apply("h1", wrong, kStart));
  EXPECT_TRUE(fleet_.flows().empty());
  EXPECT_FALSE(fleet_.apply("h1", update(v1::DIRECTION_UNSPECIFIED, 1), kStart));
  EXPECT_FALSE(fleet_.apply("h1", update(v1::EGRESS, 1, 70000), kStart));
  EXPECT_FALSE(fleet_.apply("h3", update(v1::EGRESS, 1), kStart));  // no session
}

TEST_F(FleetTest, RefusesRatesThatNoLinkHas) {
  for (const double rate : {std::nan(""), HUGE_VAL, -1.0, 1.1e15}) {
    v1::FlowUpdate wrong = update(v1::EGRESS, 1e6);
    wrong.mutable_flows(0)->set_rate_bps(rate);
    EXPECT_FALSE(fleet_.apply("h1", wrong, kStart)) << rate;
    wrong = update(v1::EGRESS, 1e6);
    wrong.mutable_flows(0)->set_payload_bps(rate);
    EXPECT_FALSE(fleet_.apply("h1", wrong, kStart)) << rate;
  }
  EXPECT_TRUE(fleet_.flows().empty());
}

/// A flow between addresses that the topology file does not have: any node may speak for either end.
class FleetPodTest : public FleetTest {
 protected:
  static v1::FlowUpdate pod_update(v1::Direction direction, bool ended = false) {
    v1::FlowUpdate all = update(direction, 1e6);
    *all.mutable_flows(0)->mutable_key() = make_flow_key(kPods, 3);
    all.mutable_flows(0)->set_ended(ended);
    return all;
  }
  static v1::FlowUpdate nothing() {
    v1::FlowUpdate none;
    none.set_interval_ms(500);
    return none;
  }
  static inline const FlowId kPods{.source = *IpAddress::parse("192.168.0.1"),
                                   .destination = *IpAddress::parse("192.168.0.2"),
                                   .destination_qpn = 7};
};

TEST_F(FleetPodTest, LetsOneNodeOwnAnEndWhileItIsConnected) {
  ASSERT_TRUE(fleet_.apply("h1", pod_update(v1::EGRESS), kStart));
  ASSERT_TRUE(fleet_.apply("h2", pod_update(v1::EGRESS), kStart));
  EXPECT_EQ(fleet_.find(kPods)->egress->node, "h1");
  EXPECT_EQ(fleet_.foreign_reports(), 1U);
  ASSERT_TRUE(fleet_.apply("h2", pod_update(v1::EGRESS, true), kStart));  // ends nothing of h1's
  ASSERT_NE(fleet_.find(kPods), nullptr);
  fleet_.disconnect("h1", kStart);
  ASSERT_TRUE(fleet_.apply("h2", pod_update(v1::EGRESS), kStart));
  EXPECT_EQ(fleet_.find(kPods)->egress->node, "h2");
  EXPECT_TRUE(fleet_.node("h1")->flows.empty());
}

TEST_F(FleetPodTest, KeepsNoFlowWithoutAnEnd) {
  ASSERT_TRUE(fleet_.apply("h1", pod_update(v1::EGRESS), kStart));
  fleet_.disconnect("h1", kStart);
  ASSERT_TRUE(fleet_.apply("h2", pod_update(v1::EGRESS), kStart));
  const auto change = fleet_.apply("h2", pod_update(v1::EGRESS, true), kStart);
  ASSERT_TRUE(change);
  EXPECT_EQ(change->ended.size(), 1U);
  v1::Hello hello;
  hello.set_protocol_version(1);
  ASSERT_TRUE(fleet_.connect("h1", hello, kStart));
  ASSERT_TRUE(fleet_.apply("h1", nothing(), kStart + 500 * kMs));
  EXPECT_TRUE(fleet_.flows().empty());
}

TEST_F(FleetPodTest, EndsBothEndsOfAFlowWithinOneHost) {
  ASSERT_TRUE(fleet_.apply("h1", pod_update(v1::EGRESS), kStart));
  ASSERT_TRUE(fleet_.apply("h1", pod_update(v1::INGRESS), kStart));
  v1::FlowUpdate none = nothing();
  none.set_complete(true);
  ASSERT_TRUE(fleet_.apply("h1", none, kStart + 500 * kMs));
  EXPECT_TRUE(fleet_.flows().empty());
}

TEST_F(FleetTest, ForgetsFlowsOfANodeThatStaysAway) {
  ASSERT_TRUE(fleet_.apply("h1", update(v1::EGRESS, 1e6), kStart));
  fleet_.disconnect("h1", kStart);
  EXPECT_TRUE(fleet_.expire(kStart + Fleet::kKeepLostNodeNs - 1).ended.empty());
  EXPECT_EQ(fleet_.sender(fleet_.flows().begin()->second), nullptr);
  EXPECT_EQ(fleet_.expire(kStart + Fleet::kKeepLostNodeNs).ended.size(), 1U);
}

TEST(FlowId, HasAnIdOfEightHexadecimalDigits) {
  const FlowId id{
      .source = *IpAddress::parse("10.0.0.1"), .destination = *IpAddress::parse("10.0.0.2"), .destination_qpn = 1};
  EXPECT_EQ(id.short_id().size(), 8U);
  EXPECT_EQ(id.short_id().find_first_not_of("0123456789abcdef"), std::string::npos);
  FlowId other = id;
  other.destination_qpn = 2;
  EXPECT_NE(id.short_id(), other.short_id());
}

}  // namespace
}  // namespace te
