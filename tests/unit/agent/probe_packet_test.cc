// SPDX-License-Identifier: Apache-2.0
#include "host-agent/core/probe_packet.h"

#include <gtest/gtest.h>

#include "common/roce/packet.h"
#include "tests/unit/agent/samples.h"

namespace te::agent {
namespace {

TEST(ProbePacket, LooksLikeTheFlowToSwitches) {
  const Probe probe{1, test::key("fd00::1", "fd00::2", 0xABCDEF), 0x54321, 50001, 2, 777};
  const auto bytes = probe_packet(probe);
  const auto packet = roce::parse(bytes);
  ASSERT_TRUE(packet) << packet.error().message;
  EXPECT_EQ(packet->source, probe.flow.source);
  EXPECT_EQ(packet->destination, probe.flow.destination);
  EXPECT_EQ(packet->source_port, 50001);
  EXPECT_EQ(packet->flow_label, 0x54321U);
  EXPECT_EQ(packet->destination_qpn, 0xABCDEFU);
  EXPECT_EQ(packet->hop_limit, 2);
  EXPECT_TRUE(roce::has_valid_icrc(bytes));
}

TEST(ProbePacket, IsOfAServiceThatConnectedQueuePairsDrop) {
  const auto bytes = probe_packet({1, test::key("10.0.0.1", "10.0.0.2", 17), 0, 50001, 2, 777});
  const auto packet = roce::parse(bytes);
  ASSERT_TRUE(packet) << packet.error().message;
  EXPECT_EQ(static_cast<int>(packet->opcode) & 0xE0, 0x60);
  EXPECT_EQ(packet->ip_id, 777);
  EXPECT_FALSE(packet->ack_request);
}

}  // namespace
}  // namespace te::agent
