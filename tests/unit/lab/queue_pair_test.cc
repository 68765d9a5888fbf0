// SPDX-License-Identifier: Apache-2.0
#include "lab/endpoint/queue_pair.h"

#include <gtest/gtest.h>

#include "common/roce/source_port.h"
#include "lab/endpoint/rate_control.h"
#include "tests/support/moments.h"

namespace te::lab {
namespace {

EndpointPlan endpoint_plan() {
  EndpointPlan plan;
  plan.nics = {{"eth0", *IpAddress::parse("10.1.1.2")}};
  plan.rate_bps = 50e6;
  return plan;
}

QpPlan qp_plan() {
  QpPlan plan;
  plan.qpn = 0x1a2b;
  plan.remote_qpn = 0x3c4d;
  plan.remote = *IpAddress::parse("10.2.1.2");
  plan.sends = true;
  return plan;
}

roce::Packet marked_data(std::uint32_t psn) {
  roce::Packet packet;
  packet.opcode = roce::Opcode::kSendOnly;
  packet.psn = psn;
  packet.traffic_class = 0x6B;
  return packet;
}

TEST(QueuePair, TakesItsSourcePortFromTheQpns) {
  EXPECT_EQ(QueuePair(endpoint_plan(), qp_plan()).source_port(), 62122);
}

TEST(QueuePair, TakesItsSourcePortFromTheFlowLabelWhenThereIsOne) {
  QueuePair qp(endpoint_plan(), qp_plan());
  qp.set_flow_label(0x12345);
  EXPECT_EQ(qp.source_port(), 58177);
  EXPECT_EQ(qp.take_data(0).source_port, 58177);
}

TEST(QueuePair, MarksDataAsEcnCapable) {
  QueuePair qp(endpoint_plan(), qp_plan());
  EXPECT_EQ(qp.take_data(0).traffic_class & 3, 2);
}

TEST(QueuePair, SendsOneCongestionNotificationAnInterval) {
  QueuePair qp(endpoint_plan(), qp_plan());
  qp.on_packet(marked_data(0), 0);
  qp.on_packet(marked_data(1), 0);
  ASSERT_EQ(qp.take_control().size(), 1U);
  qp.on_packet(marked_data(2), kMs);
  EXPECT_TRUE(qp.take_control().empty());
  qp.on_packet(marked_data(3), 2 * kMs);
  const auto packets = qp.take_control();
  ASSERT_FALSE(packets.empty());
  EXPECT_EQ(packets[0].opcode, roce::Opcode::kCnp);
  EXPECT_TRUE(packets[0].backward_congestion);
  EXPECT_EQ(qp.congestion().ce_marks, 4U);
}

TEST(RateControl, CutsOnceAPeriod) {
  RateControl rate(50e6);
  rate.on_notification(0);
  const double once = rate.rate_bps(0);
  rate.on_notification(kMs);
  EXPECT_EQ(rate.rate_bps(kMs), once);
  EXPECT_LT(once, 50e6);
}

TEST(RateControl, ComesBackToTheLinkRate) {
  RateControl rate(50e6);
  for (std::int64_t now_ns = 0; now_ns < 500 * kMs; now_ns += 10 * kMs) rate.on_notification(now_ns);
  EXPECT_LT(rate.rate_bps(500 * kMs), 5e6);
  EXPECT_EQ(rate.rate_bps(2000 * kMs), 50e6);
  EXPECT_FALSE(rate.is_limited());
}

TEST(RateControl, SpacesThePacketsOfALimitedQp) {
  QueuePair qp(endpoint_plan(), qp_plan());
  roce::Packet notification;
  notification.opcode = roce::Opcode::kCnp;
  qp.on_packet(notification, 0);
  ASSERT_TRUE(qp.has_data(0));
  (void)qp.take_data(0);
  EXPECT_FALSE(qp.has_data(0));
  EXPECT_TRUE(qp.has_data(kMs));
}

}  // namespace
}  // namespace te::lab
