// SPDX-License-Identifier: Apache-2.0
// Rows: a packet, what is wrong or special with it, and the counters after it. No packet is ever changed here.
#include <functional>

#include "bpf/te_abi.h"
#include "tests/bpf/datapath/bpf_fixture.h"

namespace te::agent {
namespace {

using roce::Opcode;
using roce::Packet;

struct Row {
  const char* description;
  std::function<void(Packet&)> shape;
  FlowCounters expected;  // packets and bytes are filled in by the test
};

void plain(Packet& /*packet*/) {}

std::function<void(Packet&)> opcode(int code, std::size_t payload_bytes) {
  return [code, payload_bytes](Packet& packet) {
    packet.opcode = static_cast<Opcode>(code);
    packet.payload = packet.payload.first(payload_bytes);
  };
}

std::function<void(Packet&)> acknowledge(std::uint8_t syndrome) {
  return [syndrome](Packet& packet) {
    packet.opcode = Opcode::kAcknowledge;
    packet.aeth = roce::Aeth{.syndrome = syndrome, .msn = 1};
    packet.payload = {};
  };
}

std::vector<Row> rows() {
  return {
      {"WRITE middle of 1024 bytes", plain, {.payload_bytes = 1024}},
      {"three bytes of pad are not payload", opcode(0x04, 1021), {.payload_bytes = 1021}},
      {"one byte of pad", opcode(0x02, 7), {.payload_bytes = 7}},
      {"empty SEND", opcode(0x04, 0), {}},
      {"SEND first", opcode(0x00, 512), {.payload_bytes = 512}},
      {"SEND last with immediate", opcode(0x03, 512), {.payload_bytes = 512}},
      {"WRITE only, RETH", opcode(0x0A, 512), {.payload_bytes = 512}},
      {"WRITE only with immediate", opcode(0x0B, 512), {.payload_bytes = 512}},
      {"READ request has no payload", opcode(0x0C, 0), {}},
      {"READ response middle", opcode(0x0E, 512), {.payload_bytes = 512}},
      {"READ response only, AETH", opcode(0x10, 512), {.payload_bytes = 512}},
      {"compare and swap: AtomicETH is no payload", opcode(0x13, 28), {}},
      {"fetch and add", opcode(0x14, 28), {}},
      {"atomic ACK is an ACK without payload",
       [](Packet& packet) {
         packet.opcode = Opcode::kAtomicAcknowledge;
         packet.aeth = roce::Aeth{.syndrome = 0x1F, .msn = 1};
         packet.payload = packet.payload.first(8);
       },
       {.ack_packets = 1}},
      {"SEND with invalidate, IETH", opcode(0x16, 516), {.payload_bytes = 512}},
      {"UC SEND only", opcode(0x24, 512), {.payload_bytes = 512}},
      {"XRC WRITE middle: XRCETH is no payload", opcode(0xA7, 516), {.payload_bytes = 512}},
      {"unknown opcode: counted, its payload unknown", opcode(0x1B, 512), {}},
      {"vendor opcode", opcode(0xC0, 512), {}},
      {"congestion experienced",
       [](Packet& packet) { packet.traffic_class = 3; },
       {.payload_bytes = 1024, .ecn_ce_packets = 1}},
      {"DSCP and ECT(1) are no mark", [](Packet& packet) { packet.traffic_class = 0x69; }, {.payload_bytes = 1024}},
      {"ACK", acknowledge(0x1F), {.ack_packets = 1}},
      {"ACK with credits", acknowledge(0x05), {.ack_packets = 1}},
      {"NAK sequence error", acknowledge(0x60), {.nak_sequence = 1}},
      {"NAK invalid request", acknowledge(0x61), {.nak_other = 1}},
      {"NAK remote operation", acknowledge(0x63), {.nak_other = 1}},
      {"RNR NAK", acknowledge(0x2C), {.nak_rnr = 1}},
      {"CNP from source port 0",
       [](Packet& packet) {
         packet.opcode = Opcode::kCnp;
         packet.backward_congestion = true;
         packet.source_port = 0;
         packet.payload = {};
       },
       {.cnp_packets = 1}},
      {"FECN and BECN bits are not part of the QPN",
       [](Packet& packet) { packet.backward_congestion = true; },
       {.payload_bytes = 1024}},
      {"highest QPN and PSN",
       [](Packet& packet) { packet.destination_qpn = packet.psn = 0xFFFFFF; },
       {.payload_bytes = 1024}},
  };
}

class Counting : public BpfFixture, public testing::WithParamInterface<std::tuple<bool, FlowDirection>> {
 protected:
  [[nodiscard]] bool v6() const { return std::get<0>(GetParam()); }
  [[nodiscard]] FlowDirection direction() const { return std::get<1>(GetParam()); }
};

std::string name_of(bool v6, FlowDirection direction) {
  return std::string(v6 ? "v6" : "v4") + (direction == FlowDirection::kEgress ? "_egress" : "_ingress");
}

INSTANTIATE_TEST_SUITE_P(Each, Counting,
                         testing::Combine(testing::Bool(),
                                          testing::Values(FlowDirection::kEgress, FlowDirection::kIngress)),
                         [](const auto& row) { return name_of(std::get<0>(row.param), std::get<1>(row.param)); });

TEST_P(Counting, FollowsTheRows) {
  std::uint32_t qpn = 0x1000;
  for (const Row& row : rows()) {
    SCOPED_TRACE(row.description);
    Packet packet = plain_packet(v6());
    packet.destination_qpn = ++qpn;  // a flow of its own
    row.shape(packet);
    const Bytes frame = frame_of(build(packet));
    EXPECT_EQ(run(direction(), frame), frame);
    FlowCounters expected = row.expected;
    expected.packets = 1;
    expected.bytes = frame.size() - kEthernetBytes;
    const FlowSample flow = only_flow();
    EXPECT_EQ(flow.key, key_of(packet));
    EXPECT_EQ(flow.direction, direction());
    EXPECT_EQ(flow.source_port, packet.source_port);
    EXPECT_EQ(flow.wire_port, packet.source_port);
    EXPECT_EQ(flow.counters, expected);
    ASSERT_TRUE(datapath().erase_flow(flow.key));
  }
}

struct Refused {
  const char* description;
  std::function<void(Packet&)> shape;
  std::function<void(Bytes&)> spoil;  // of the whole frame
};

void insert_at(Bytes& frame, std::size_t at, const Bytes& bytes) {
  frame.insert(frame.begin() + static_cast<std::ptrdiff_t>(at), bytes.begin(), bytes.end());
}

void unspoiled(Bytes& /*frame*/) {}

std::vector<Refused> refused_of_either_family(std::size_t udp_at) {
  return {
      {"QPN 1 is management", [](Packet& packet) { packet.destination_qpn = 1; }, unspoiled},
      {"QPN 0 is management", [](Packet& packet) { packet.destination_qpn = 0; }, unspoiled},
      {"UD has no connection", opcode(0x64, 512), unspoiled},
      {"UD with immediate", opcode(0x65, 512), unspoiled},
      {"three tags", plain,
       [](Bytes& frame) {
         insert_at(frame, 12, {0x88, 0xA8, 0, 5, 0x81, 0, 0, 6, 0x81, 0, 0, 7});
       }},
      {"a tag before what is no IP", plain,
       [](Bytes& frame) {
         insert_at(frame, 12, {0x81, 0, 0, 5, 0x08, 0x06});
       }},
      {"frame cut off within a tag", plain,
       [](Bytes& frame) {
         insert_at(frame, 12, {0x81, 0, 0, 5});
         frame.resize(16);
       }},
      {"ARP", plain, [](Bytes& frame) { frame[12] = 0x08, frame[13] = 0x06; }},
      {"other UDP port", plain, [udp_at](Bytes& frame) { frame[udp_at + 3] ^= 1; }},
      {"UDP length too long", plain, [udp_at](Bytes& frame) { frame[udp_at + 5] += 4; }},
      {"UDP length too short", plain, [udp_at](Bytes& frame) { frame[udp_at + 5] -= 4; }},
      {"transport version", plain, [udp_at](Bytes& frame) { frame[udp_at + 9] |= 1; }},
      {"frame longer than the IP packet", plain, [](Bytes& frame) { frame.insert(frame.end(), 4, 0); }},
      {"frame cut off", plain, [](Bytes& frame) { frame.resize(frame.size() - 4); }},
      {"frame cut off within the BTH", plain, [udp_at](Bytes& frame) { frame.resize(udp_at + 12); }},
      {"frame cut off within UDP", plain, [udp_at](Bytes& frame) { frame.resize(udp_at + 2); }},
      {"frame cut off behind IP", plain, [udp_at](Bytes& frame) { frame.resize(udp_at); }},
      {"pad exceeds the payload", opcode(0x04, 0), [udp_at](Bytes& frame) { frame[udp_at + 9] |= 0x30; }},
  };
}

std::vector<Refused> refused_of_v4() {
  return {
      {"IP options", plain, [](Bytes& frame) { frame[14] = 0x46; }},
      {"first fragment", plain, [](Bytes& frame) { frame[20] |= 0x20; }},
      {"later fragment", plain, [](Bytes& frame) { frame[21] = 1; }},
      {"TCP", plain, [](Bytes& frame) { frame[23] = 6; }},
      {"version 6 in an IPv4 frame", plain, [](Bytes& frame) { frame[14] = 0x65; }},
      {"total length too long", plain, [](Bytes& frame) { frame[17] += 4; }},
      {"total length shorter than the header", plain, [](Bytes& frame) { frame[16] = 0, frame[17] = 8; }},
  };
}

std::vector<Refused> refused_of_v6() {
  return {
      {"hop-by-hop header", plain, [](Bytes& frame) { frame[20] = 0; }},
      {"fragment header", plain, [](Bytes& frame) { frame[20] = 44; }},
      {"TCP", plain, [](Bytes& frame) { frame[20] = 6; }},
      {"version 4 in an IPv6 frame", plain, [](Bytes& frame) { frame[14] = 0x45; }},
      {"payload length too long", plain, [](Bytes& frame) { frame[19] += 4; }},
      {"payload length too short", plain, [](Bytes& frame) { frame[18] = 0, frame[19] = 8; }},
  };
}

TEST_P(Counting, LeavesAloneWhatIsNoFlow) {
  auto all = refused_of_either_family(kEthernetBytes + (v6() ? 40 : 20));
  const auto own = v6() ? refused_of_v6() : refused_of_v4();
  all.insert(all.end(), own.begin(), own.end());
  for (const Refused& row : all) {
    SCOPED_TRACE(row.description);
    Packet packet = plain_packet(v6());
    row.shape(packet);
    Bytes frame = frame_of(build(packet));
    row.spoil(frame);
    EXPECT_EQ(run(direction(), frame), frame);
    EXPECT_TRUE(flows().empty());
  }
}

TEST_P(Counting, LeavesGsoPacketsAlone) {
  const Bytes frame = frame_of(build(plain_packet(v6())));
  EXPECT_EQ(run(direction(), frame, {.gso_size = 256}), frame);
  EXPECT_TRUE(flows().empty());
}

TEST_P(Counting, SumsUpOverPackets) {
  Packet packet = plain_packet(v6());
  for (int i = 0; i < 5; ++i) {
    run(direction(), frame_of(build(packet)));
    ++packet.psn;
  }
  const FlowCounters counters = only_flow().counters;
  EXPECT_EQ(counters.packets, 5U);
  EXPECT_EQ(counters.bytes, 5 * size_of(packet));
  EXPECT_EQ(counters.payload_bytes, 5U * 1024U);
  EXPECT_EQ(counters.psn_gaps + counters.duplicate_packets, 0U);
}

TEST_P(Counting, KeepsFlowsApartByAddressesAndQpn) {
  const Packet first = plain_packet(v6());
  Packet other_qpn = first;
  other_qpn.destination_qpn++;
  Packet turned = first;
  std::swap(turned.source, turned.destination);
  Packet other_port = first;
  other_port.source_port++;
  for (const Packet& packet : {first, other_qpn, turned, other_port}) run(direction(), frame_of(build(packet)));
  EXPECT_EQ(flows().size(), 3U) << "the source port is no part of the key";
}

class CountingOfFamily : public BpfFixture, public testing::WithParamInterface<bool> {};
INSTANTIATE_TEST_SUITE_P(Each, CountingOfFamily, testing::Bool(),
                         [](const auto& row) { return row.param ? "v6" : "v4"; });

TEST_P(CountingOfFamily, PassesTheAgentsOwnProbesUncountedAtEgressOnly) {
  const Bytes frame = frame_of(build(plain_packet(GetParam())));
  EXPECT_EQ(run(FlowDirection::kEgress, frame, {.mark = kTeProbeMark}), frame);
  EXPECT_TRUE(flows().empty());
  run(FlowDirection::kIngress, frame, {.mark = kTeProbeMark});
  EXPECT_EQ(flows().size(), 1U);
}

TEST_P(CountingOfFamily, CountsALoopedPacketOnce) {
  const Packet packet = plain_packet(GetParam());
  send(packet);
  receive(packet);
  EXPECT_EQ(only_flow().counters.packets, 1U);
  EXPECT_EQ(only_flow().direction, FlowDirection::kEgress);
}

TEST_P(CountingOfFamily, ReadsTheLabelLastSeen) {
  Packet packet = plain_packet(GetParam());
  packet.flow_label = 0x11111;
  send(packet);
  packet.flow_label = 0xABCDE;
  packet.psn++;
  send(packet);
  EXPECT_EQ(only_flow().flow_label, GetParam() ? 0xABCDEU : 0U);
}

class Padding : public BpfFixture {};

TEST_F(Padding, OfAShortFrameIsNoReasonToRefuseIt) {
  Packet packet = plain_packet(false);
  packet.payload = {};
  packet.opcode = Opcode::kSendOnly;
  Bytes frame = frame_of(build(packet));
  ASSERT_EQ(frame.size(), 58U);
  frame.resize(60);
  run(FlowDirection::kIngress, frame);
  EXPECT_EQ(only_flow().counters.bytes, 44U);
}

class FullMap : public BpfFixture {};

TEST_F(FullMap, IsCountedAndEvictsNothing) {
  Packet packet = plain_packet(false);
  packet.payload = {};
  packet.opcode = Opcode::kSendOnly;
  Bytes frame = frame_of(build(packet));
  const std::size_t qpn_at = kEthernetBytes + 28 + 5;
  ASSERT_TRUE(datapath().set_steering(key_of(packet), 0xC222));
  constexpr std::uint32_t kExtra = 3;
  for (std::uint32_t i = 0; i < kTeMaxFlows - 1 + kExtra; ++i) {
    const std::uint32_t qpn = 0x200000 + i;
    frame[qpn_at] = static_cast<std::uint8_t>(qpn >> 16);
    frame[qpn_at + 1] = static_cast<std::uint8_t>(qpn >> 8);
    frame[qpn_at + 2] = static_cast<std::uint8_t>(qpn);
    run(FlowDirection::kEgress, frame);
  }
  EXPECT_EQ(flows().size(), static_cast<std::size_t>(kTeMaxFlows));
  EXPECT_EQ(datapath().losses().value().flows, kExtra);
  send(packet);
  bool steered = false;
  for (const FlowSample& flow : flows()) steered |= flow.key == key_of(packet) && flow.counters.steered_packets == 1;
  EXPECT_TRUE(steered);
  const auto refused = datapath().set_steering(key_of(plain_packet(false), 77), 0xC333);
  ASSERT_FALSE(refused);
  EXPECT_NE(refused.error().message.find("full"), std::string::npos) << refused.error().message;
}

}  // namespace
}  // namespace te::agent
