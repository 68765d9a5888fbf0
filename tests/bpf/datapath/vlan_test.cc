// SPDX-License-Identifier: Apache-2.0
// Rows: the tags of a frame. Whatever they are, the flow is counted and steered as without them, and they stay.
#include <tuple>

#include "common/roce/icrc.h"
#include "tests/bpf/datapath/bpf_fixture.h"

namespace te::agent {
namespace {

using roce::Packet;

constexpr std::size_t kTypeAt = 12;  // behind the two addresses

struct Tags {
  const char* name;
  Bytes bytes;
};

const Tags kQ{.name = "802_1Q", .bytes = {0x81, 0x00, 0x60, 0x05}};
const Tags kAd{.name = "802_1ad", .bytes = {0x88, 0xA8, 0x00, 0x64}};
const Tags kAdAndQ{.name = "802_1ad_and_802_1Q", .bytes = {0x88, 0xA8, 0x00, 0x64, 0x81, 0x00, 0x00, 0xC8}};
const Tags kQAndQ{.name = "802_1Q_twice", .bytes = {0x81, 0x00, 0x00, 0x64, 0x81, 0x00, 0x00, 0xC8}};

class Vlan : public BpfFixture, public testing::WithParamInterface<std::tuple<bool, Tags>> {
 protected:
  [[nodiscard]] static Packet packet() { return plain_packet(std::get<0>(GetParam())); }
  [[nodiscard]] static Bytes tagged(const Bytes& ip) {
    const Bytes& tags = std::get<1>(GetParam()).bytes;
    Bytes frame = frame_of(ip);
    frame.insert(frame.begin() + kTypeAt, tags.begin(), tags.end());
    return frame;
  }
};
INSTANTIATE_TEST_SUITE_P(Each, Vlan, testing::Combine(testing::Bool(), testing::Values(kQ, kAd, kAdAndQ, kQAndQ)),
                         [](const auto& row) {
                           return std::string(std::get<0>(row.param) ? "v6_" : "v4_") + std::get<1>(row.param).name;
                         });

TEST_P(Vlan, IsPassedOverInBothDirections) {
  const Bytes ip = build(packet());
  for (const FlowDirection direction : {FlowDirection::kEgress, FlowDirection::kIngress}) {
    EXPECT_EQ(run(direction, tagged(ip)), tagged(ip));
    const FlowSample flow = only_flow();
    EXPECT_EQ(flow.key, key_of(packet()));
    EXPECT_EQ(flow.direction, direction);
    EXPECT_EQ(flow.counters.packets, 1U);
    EXPECT_EQ(flow.counters.bytes, ip.size()) << "bytes are of IP packets, without tags";
    EXPECT_EQ(flow.counters.payload_bytes, packet().payload.size());
    ASSERT_TRUE(datapath().erase_flow(flow.key));
  }
}

TEST_P(Vlan, StaysWhenThePortBehindItChangesAndTheIcrcWithIt) {
  ASSERT_TRUE(datapath().set_steering(key_of(packet()), kPort));
  Packet moved = packet();
  moved.source_port = kPort;
  EXPECT_EQ(run(FlowDirection::kEgress, tagged(build(packet()))), tagged(build(moved)));
  EXPECT_EQ(only_flow().counters.steered_packets, 1U);
}

TEST_P(Vlan, IsNoReasonToTakeAFrameWithTrailingBytes) {
  Bytes frame = tagged(build(packet()));
  frame.insert(frame.end(), 4, 0);
  EXPECT_EQ(run(FlowDirection::kIngress, frame), frame);
  EXPECT_TRUE(flows().empty());
}

}  // namespace
}  // namespace te::agent
