// SPDX-License-Identifier: Apache-2.0
#include <poll.h>

#include <algorithm>

#include "bpf/te_abi.h"
#include "tests/bpf/datapath/bpf_fixture.h"

namespace te::agent {
namespace {

using Kind = KernelEvent::Kind;
using roce::Opcode;
using roce::Packet;

class Events : public BpfFixture, public testing::WithParamInterface<bool> {
 protected:
  [[nodiscard]] Packet packet() const { return plain_packet(GetParam()); }
};
INSTANTIATE_TEST_SUITE_P(Each, Events, testing::Bool(), [](const auto& row) { return row.param ? "v6" : "v4"; });

std::size_t count_of(const std::vector<KernelEvent>& events, Kind kind) {
  return static_cast<std::size_t>(
      std::count_if(events.begin(), events.end(), [kind](const KernelEvent& event) { return event.kind == kind; }));
}

TEST_P(Events, TellANewFlowOnce) {
  send(packet());
  send(packet());
  const auto all = events();
  ASSERT_EQ(all.size(), 1U);
  EXPECT_EQ(all[0].kind, Kind::kNewFlow);
  EXPECT_EQ(all[0].key, key_of(packet()));
  EXPECT_EQ(all[0].direction, FlowDirection::kEgress);
  EXPECT_EQ(all[0].new_port, packet().source_port);
  EXPECT_EQ(all[0].opcode, static_cast<std::uint8_t>(packet().opcode));
  EXPECT_EQ(all[0].psn, packet().psn);
}

TEST_P(Events, MakeTheDescriptorReadable) {
  pollfd wait{.fd = datapath().event_fd(), .events = POLLIN, .revents = 0};
  EXPECT_EQ(::poll(&wait, 1, 0), 0);
  send(packet());
  EXPECT_EQ(::poll(&wait, 1, 1000), 1);
  events();
  EXPECT_EQ(::poll(&wait, 1, 0), 0);
}

TEST_P(Events, TellBothPortsOfAChange) {
  Packet changed = packet();
  receive(changed);
  changed.source_port = 0xC222;
  receive(changed);
  const auto all = events();
  ASSERT_EQ(all.size(), 2U);
  EXPECT_EQ(all[1].kind, Kind::kPortChanged);
  EXPECT_EQ(all[1].direction, FlowDirection::kIngress);
  EXPECT_EQ(all[1].old_port, packet().source_port);
  EXPECT_EQ(all[1].new_port, 0xC222);
  EXPECT_EQ(only_flow().source_port, 0xC222);
}

TEST_P(Events, OfPortChangesAreTenASecondAtMost) {
  Packet flapping = packet();
  for (std::uint16_t i = 0; i < 100; ++i) {
    flapping.source_port = static_cast<std::uint16_t>(0xC000 + i);
    send(flapping);
  }
  // The 100 packets may straddle the end of one window.
  EXPECT_GE(count_of(events(), Kind::kPortChanged), static_cast<std::size_t>(kTeEventsPerSecond));
  EXPECT_EQ(only_flow().source_port, 0xC000 + 99);
  EXPECT_EQ(datapath().losses().value().events, 0U) << "what the limit holds back is not lost";
}

TEST_P(Events, TellNaksWithTheirSyndrome) {
  Packet nak = packet();
  nak.opcode = Opcode::kAcknowledge;
  nak.aeth = roce::Aeth{.syndrome = 0x60, .msn = 7};
  nak.payload = {};
  nak.psn = 0x1234;
  receive(nak);
  const auto all = events();
  ASSERT_EQ(all.size(), 2U);
  EXPECT_EQ(all[1].kind, Kind::kNak);
  EXPECT_EQ(all[1].syndrome, 0x60);
  EXPECT_EQ(all[1].psn, 0x1234U);
}

TEST_P(Events, AreNotMadeOfAcks) {
  Packet ack = packet();
  ack.opcode = Opcode::kAcknowledge;
  ack.aeth = roce::Aeth{.syndrome = 0x1F, .msn = 7};
  ack.payload = {};
  receive(ack);
  receive(ack);
  EXPECT_EQ(events().size(), 1U);
}

TEST_P(Events, OfACnpDoNotReportAPortChange) {
  receive(packet());
  Packet cnp = packet();
  cnp.opcode = Opcode::kCnp;
  cnp.source_port = 0;
  cnp.payload = {};
  receive(cnp);
  receive(packet());
  const auto all = events();
  ASSERT_EQ(all.size(), 2U);
  EXPECT_EQ(all[1].kind, Kind::kCnp);
  EXPECT_EQ(count_of(all, Kind::kPortChanged), 0U);
  EXPECT_EQ(only_flow().source_port, packet().source_port);
}

TEST_P(Events, OfAFlowThatBeganWithACnpGiveItsPortLater) {
  Packet cnp = packet();
  cnp.opcode = Opcode::kCnp;
  cnp.source_port = 0;
  cnp.payload = {};
  receive(cnp);
  receive(packet());
  const auto all = events();
  EXPECT_EQ(all.front().kind, Kind::kNewFlow);
  EXPECT_EQ(count_of(all, Kind::kNewFlow), 2U);
  EXPECT_EQ(count_of(all, Kind::kPortChanged), 0U);
  EXPECT_EQ(all.back().new_port, packet().source_port);
}

TEST_P(Events, TellRareOpcodes) {
  for (const int code : {0x13, 0x14, 0x1C, 0x1B, 0xC7}) {
    Packet rare = packet();
    rare.opcode = static_cast<Opcode>(code);
    rare.payload = rare.payload.first(28);
    send(rare);
    const auto all = events();
    ASSERT_EQ(count_of(all, Kind::kRareOpcode), 1U) << code;
    EXPECT_EQ(all.back().opcode, code);
  }
}

TEST_P(Events, ThatFindNoRoomAreCounted) {
  Packet many = packet();
  many.payload = {};
  constexpr std::uint32_t kFlows = 8000;  // more new-flow events than the ring holds
  for (std::uint32_t i = 0; i < kFlows; ++i) {
    many.destination_qpn = 0x300000 + i;
    send(many);
  }
  const std::uint64_t lost = datapath().losses().value().events;
  EXPECT_GT(lost, 0U);
  EXPECT_EQ(events().size() + lost, kFlows);
}

}  // namespace
}  // namespace te::agent
