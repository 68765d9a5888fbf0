// SPDX-License-Identifier: Apache-2.0
#include <random>

#include "common/roce/icrc.h"
#include "tests/bpf/datapath/bpf_fixture.h"

namespace te::agent {
namespace {

using roce::Opcode;
using roce::Packet;

class Steering : public BpfFixture, public testing::WithParamInterface<bool> {
 protected:
  [[nodiscard]] Packet packet() const { return plain_packet(GetParam()); }
  void steer(std::uint16_t port) {
    const auto done = datapath().set_steering(key_of(packet()), port);
    ASSERT_TRUE(done) << done.error().message;
  }
};
INSTANTIATE_TEST_SUITE_P(Each, Steering, testing::Bool(), [](const auto& row) { return row.param ? "v6" : "v4"; });

/// The frame of the same packet had it been sent from `port`, made from scratch.
Bytes expected_frame(Packet packet, std::uint16_t port, bool with_checksum) {
  packet.source_port = port;
  Bytes ip = build(packet);
  if (with_checksum) fill_udp_checksum(ip);
  return frame_of(ip);
}

TEST_P(Steering, SendsFromTheNewPortWithAValidIcrc) {
  steer(kPort);
  EXPECT_EQ(send(packet()), expected_frame(packet(), kPort, GetParam()));
  const FlowSample flow = only_flow();
  EXPECT_EQ(flow.source_port, packet().source_port);
  EXPECT_EQ(flow.wire_port, kPort);
  EXPECT_EQ(flow.steer_port, kPort);
  EXPECT_EQ(flow.counters.packets, 1U);
  EXPECT_EQ(flow.counters.steered_packets, 1U);
}

TEST_P(Steering, EqualsAComputationFromScratchOnRandomPackets) {
  constexpr int kPackets = 10'000;
  constexpr std::size_t kMaxPayload = 3500;  // what a test run takes
  std::mt19937 random(7);                    // NOLINT(bugprone-random-generator-seed): repeatable
  Bytes payload(kMaxPayload);
  for (auto& byte : payload) byte = static_cast<std::uint8_t>(random());
  Packet drawn = packet();
  for (int i = 0; i < kPackets; ++i) {
    drawn.source_port = static_cast<std::uint16_t>(random());
    drawn.psn = random() & 0xFFFFFF;
    drawn.ip_id = static_cast<std::uint16_t>(random());
    drawn.flow_label = random() & 0xFFFFF;
    drawn.traffic_class = static_cast<std::uint8_t>(random());
    drawn.hop_limit = static_cast<std::uint8_t>(random());
    drawn.opcode = static_cast<Opcode>(random() % 0x0C);
    drawn.payload = std::span(payload).first(random() % kMaxPayload);
    const auto port = static_cast<std::uint16_t>(0xC000 | random());
    const bool with_checksum = GetParam() || (random() & 1) != 0;
    if (i % 100 == 0) steer(port);
    const std::uint16_t steered_to = only_flow().steer_port;
    Bytes ip = build(drawn);
    if (with_checksum) fill_udp_checksum(ip);
    ASSERT_EQ(run(FlowDirection::kEgress, frame_of(ip)), expected_frame(drawn, steered_to, with_checksum))
        << "packet " << i;
  }
  EXPECT_EQ(datapath().losses().value().unsteered_packets, 0U);
}

TEST_P(Steering, WritesAUdpChecksumOfZeroAsAllOnes) {
  Packet searched = packet();
  Bytes ip;
  for (std::uint32_t psn = 0; psn < 0xFFFFFF; ++psn) {  // one in 65,536 has that checksum
    searched.psn = psn;
    searched.payload = searched.payload.first(4);
    searched.source_port = kPort;
    ip = build(searched);
    fill_udp_checksum(ip);
    const std::size_t checksum_at = (GetParam() ? 40 : 20) + 6;
    if (ip[checksum_at] == 0xFF && ip[checksum_at + 1] == 0xFF) break;
  }
  const Bytes expected = frame_of(ip);
  searched.source_port = 0xC111;
  ip = build(searched);
  fill_udp_checksum(ip);
  steer(kPort);
  EXPECT_EQ(run(FlowDirection::kEgress, frame_of(ip)), expected);
}

TEST_P(Steering, LeavesAnAbsentUdpChecksumAbsent) {
  Bytes ip = build(packet());
  const std::size_t checksum_at = (GetParam() ? 40 : 20) + 6;
  ip[checksum_at] = ip[checksum_at + 1] = 0;
  steer(kPort);
  const Bytes out = run(FlowDirection::kEgress, frame_of(ip));
  EXPECT_EQ(out[kEthernetBytes + checksum_at], 0);
  EXPECT_EQ(out[kEthernetBytes + checksum_at + 1], 0);
  EXPECT_TRUE(roce::has_valid_icrc(std::span(out).subspan(kEthernetBytes)));
}

TEST_P(Steering, LeavesAPacketAloneThatHasThePortAlready) {
  steer(packet().source_port);
  const Bytes frame = frame_of(build(packet()));
  EXPECT_EQ(run(FlowDirection::kEgress, frame), frame);
  EXPECT_EQ(only_flow().counters.steered_packets, 0U);
  EXPECT_EQ(only_flow().wire_port, packet().source_port);
}

TEST_P(Steering, TakesAcksAndCnpsAlong) {
  steer(kPort);
  Packet ack = packet();
  ack.opcode = Opcode::kAcknowledge;
  ack.payload = {};
  EXPECT_EQ(send(ack), expected_frame(ack, kPort, GetParam()));
  Packet cnp = packet();
  cnp.opcode = Opcode::kCnp;
  cnp.source_port = 0;
  cnp.payload = {};
  EXPECT_EQ(send(cnp), expected_frame(cnp, kPort, GetParam()));
}

TEST_P(Steering, DoesNotSteerOtherFlows) {
  steer(kPort);
  Packet other = packet();
  other.destination_qpn++;
  const Bytes frame = frame_of(build(other));
  EXPECT_EQ(run(FlowDirection::kEgress, frame), frame);
}

TEST_P(Steering, NeverTouchesWhatComesIn) {
  steer(kPort);
  const Bytes frame = frame_of(build(packet()));
  EXPECT_EQ(run(FlowDirection::kIngress, frame), frame);
}

TEST_P(Steering, KeepsCountersAcrossSettingMovingAndClearing) {
  send(packet());
  steer(kPort);
  send(packet());
  steer(kPort + 1);
  EXPECT_EQ(send(packet()), expected_frame(packet(), kPort + 1, GetParam()));
  steer(0);
  const Bytes frame = frame_of(build(packet()));
  EXPECT_EQ(run(FlowDirection::kEgress, frame), frame);
  const FlowSample flow = only_flow();
  EXPECT_EQ(flow.counters.packets, 4U);
  EXPECT_EQ(flow.counters.steered_packets, 2U);
  EXPECT_EQ(flow.steer_port, 0);
  EXPECT_EQ(flow.wire_port, packet().source_port);
}

TEST_P(Steering, MayComeBeforeTheFirstPacket) {
  steer(kPort);
  FlowSample flow = only_flow();
  EXPECT_EQ(flow.key, key_of(packet()));
  EXPECT_EQ(flow.counters.packets, 0U);
  EXPECT_EQ(flow.direction, FlowDirection::kEgress);
  send(packet());
  EXPECT_EQ(events().at(0).kind, KernelEvent::Kind::kNewFlow);
}

TEST_P(Steering, RefusesAPortOutsideTheRange) {
  EXPECT_FALSE(datapath().set_steering(key_of(packet()), 0xBFFF).ok());
  EXPECT_TRUE(flows().empty());
}

TEST_P(Steering, RefusesAFlowThatComesIn) {
  receive(packet());
  const auto refused = datapath().set_steering(key_of(packet()), kPort);
  ASSERT_FALSE(refused);
  EXPECT_NE(refused.error().message.find("leaves this host"), std::string::npos) << refused.error().message;
}

TEST_P(Steering, LettingAnUnknownFlowGoIsAnError) {
  EXPECT_FALSE(datapath().set_steering(key_of(packet()), 0).ok());
  EXPECT_TRUE(flows().empty());
}

TEST_P(Steering, KeepsASteeredFlowFromBeingErased) {
  steer(kPort);
  const auto refused = datapath().erase_flow(key_of(packet()));
  ASSERT_FALSE(refused);
  EXPECT_NE(refused.error().message.find("steered"), std::string::npos) << refused.error().message;
  steer(0);
  EXPECT_TRUE(datapath().erase_flow(key_of(packet())));
  EXPECT_TRUE(flows().empty());
  EXPECT_FALSE(datapath().erase_flow(key_of(packet())).ok());
}

}  // namespace
}  // namespace te::agent
