// SPDX-License-Identifier: Apache-2.0
#include "host-agent/core/messages.h"

#include <gtest/gtest.h>

#include "tests/unit/agent/samples.h"

namespace te::agent {
namespace {

v1::ProbeRequest probe_request() {
  v1::ProbeRequest request;
  request.set_id(9);
  *request.mutable_flow() = to_message(test::key("10.0.0.1", "10.0.0.2", 17));
  request.add_ports(50000);
  request.add_ttls(2);
  request.set_probes_per_s(50);
  request.set_attempts(3);
  request.set_timeout_ms(100);
  return request;
}

TEST(Messages, FlowKeySurvivesTheWay) {
  const FlowKey key = test::key("fd00::1", "fd00::2", 17);
  const auto back = flow_key_from(to_message(key));
  ASSERT_TRUE(back) << back.error().message;
  EXPECT_EQ(*back, key);
}

TEST(Messages, RefusalsAnswerTheWholeRequest) {
  v1::SteeringSet set;
  set.set_revision(4);
  *set.add_entries() = to_message(Steering{test::key("10.0.0.1", "10.0.0.2", 17), 50000});
  const v1::SteeringReport report = refused_steering(set, "no");
  EXPECT_EQ(report.revision(), 4U);
  EXPECT_EQ(report.programmed_size(), 0);
  ASSERT_EQ(report.failures_size(), 1);
  EXPECT_EQ(report.failures(0).entry().port(), 50000U);
  EXPECT_EQ(report.failures(0).reason(), "no");
  const v1::ProbeResult result = refused_probe(probe_request(), "no");
  EXPECT_EQ(result.id(), 9U);
  EXPECT_TRUE(result.done());
  EXPECT_EQ(result.error(), "no");
}

TEST(Messages, FlowKeyOfMixedFamiliesIsRefused) {
  v1::FlowKey message = to_message(test::key("10.0.0.1", "10.0.0.2", 17));
  message.set_source(std::string(16, 'x'));
  EXPECT_FALSE(flow_key_from(message).ok());
}

TEST(Messages, FlowKeyWithABadAddressOrQpnIsRefused) {
  v1::FlowKey message = to_message(test::key("10.0.0.1", "10.0.0.2", 17));
  message.set_destination("abc");
  EXPECT_FALSE(flow_key_from(message).ok());
  message = to_message(test::key("10.0.0.1", "10.0.0.2", 17));
  message.set_destination_qpn(1U << 24);
  EXPECT_FALSE(flow_key_from(message).ok());
}

TEST(Messages, UnknownQpnIsAbsentFromTheReport) {
  FlowRecord flow = test::egress("10.0.0.1", "10.0.0.2", 17);
  EXPECT_FALSE(to_message(flow).has_local_qpn());
  flow.local_qpn = 100;
  EXPECT_EQ(to_message(flow).local_qpn(), 100U);
}

TEST(Messages, ProbeRequestBecomesAnOrder) {
  const auto order = probe_order_from(probe_request());
  ASSERT_TRUE(order) << order.error().message;
  EXPECT_EQ(order->ports, std::vector<std::uint16_t>{50000});
  EXPECT_EQ(order->ttls, std::vector<std::uint8_t>{2});
  EXPECT_EQ(order->probes_per_s, 50U);
  EXPECT_EQ(order->attempts, 3U);
  EXPECT_EQ(order->timeout_ns, 100 * kMs);
}

TEST(Messages, ProbeRequestOutOfRangeIsRefused) {
  v1::ProbeRequest request = probe_request();
  request.add_ports(65536);
  EXPECT_FALSE(probe_order_from(request).ok());
  request = probe_request();
  request.add_ttls(256);
  EXPECT_FALSE(probe_order_from(request).ok());
}

TEST(Messages, UnreadableSteeringEntriesAreProblems) {
  v1::SteeringSet set;
  *set.add_entries() = to_message(Steering{test::key("10.0.0.1", "10.0.0.2", 17), 50000});
  set.add_entries()->set_port(50000);
  std::vector<std::string> problems;
  EXPECT_EQ(steering_from(set, problems).size(), 1U);
  EXPECT_EQ(problems.size(), 1U);
}

TEST(Messages, SteeringReportListsWhatTheKernelHoldsAndWhatFailed) {
  SteeringReconciler reconciler;
  const Steering good{test::key("10.0.0.1", "10.0.0.2", 17), 50000};
  const Steering bad{test::key("10.0.0.1", "10.0.0.2", 18), 50001};
  ASSERT_TRUE(reconciler.want(4, std::vector{good, bad}));
  reconciler.done(good, {}, 0);
  reconciler.done(bad, Error{"map full"}, 0);
  const v1::SteeringReport report = steering_report(reconciler);
  EXPECT_EQ(report.revision(), 4U);
  ASSERT_EQ(report.programmed_size(), 1);
  EXPECT_EQ(report.programmed(0).port(), 50000U);
  ASSERT_EQ(report.failures_size(), 1);
  EXPECT_EQ(report.failures(0).reason(), "map full");
}

TEST(Messages, SourceUpdateListsAllSources) {
  SourceBoard board;
  board.set("tc", v1::Source::ON, "");
  board.set("qp", v1::Source::OFF, "no file");
  const v1::SourceUpdate update = source_update(board);
  ASSERT_EQ(update.sources_size(), 2);
  EXPECT_EQ(update.sources(0).name(), "tc");
  EXPECT_EQ(update.sources(1).reason(), "no file");
}

TEST(Messages, SilentHopHasNoResponder) {
  ProbeReport report;
  report.outcomes.push_back({50000, 1, IpAddress(), 3, 0});
  EXPECT_TRUE(to_message(report).answers(0).responder().empty());
}

}  // namespace
}  // namespace te::agent
