// SPDX-License-Identifier: Apache-2.0
#include "common/roce/source_port.h"

#include <gtest/gtest.h>

namespace te::roce {
namespace {

struct LabelVector {
  std::uint32_t flow_label;
  std::uint16_t port;
};

struct QpnVector {
  std::uint32_t local_qpn;
  std::uint32_t remote_qpn;
  std::uint32_t flow_label;
  std::uint16_t port;
};

constexpr LabelVector kLabelVectors[] = {{0x1, 0xC001},    {0x3FFF, 0xFFFF},  {0x4000, 0xC001},
                                         {0x4001, 0xC000}, {0xFFFFF, 0xFFC0}, {0x12345, 0xE341}};
constexpr QpnVector kQpnVectors[] = {{0x11, 0x12, 0x132, 0xC132},
                                     {0x1a2b, 0x3c4d, 0x9f28d, 0xF2AA},
                                     {0xabcdef, 0x123456, 0xac3e3, 0xC3C8},
                                     {0x100, 0x100, 0x10000, 0xC004},
                                     {0x101, 0x101, 0x10201, 0xC205}};

TEST(SourcePort, FollowsTheFlowLabel) {
  for (const auto& row : kLabelVectors)
    EXPECT_EQ(source_port_of_flow_label(row.flow_label), row.port) << row.flow_label;
}

TEST(SourcePort, IgnoresBitsAboveTheFlowLabel) {
  EXPECT_EQ(source_port_of_flow_label(0xF0000000U | 0x12345U), source_port_of_flow_label(0x12345));
}

TEST(SourcePort, FollowsTheQpnsInEitherOrderWhenNoLabelIsSet) {
  for (const auto& row : kQpnVectors) {
    EXPECT_EQ(flow_label_of_qpns(row.local_qpn, row.remote_qpn), row.flow_label);
    EXPECT_EQ(source_port_of_qp(0, row.local_qpn, row.remote_qpn), row.port);
    EXPECT_EQ(source_port_of_qp(0, row.remote_qpn, row.local_qpn), row.port);
  }
}

TEST(SourcePort, PrefersTheLabelOverTheQpns) { EXPECT_EQ(source_port_of_qp(0x12345, 0x11, 0x12), 0xE341); }

TEST(SourcePort, HasALabelForEveryPort) {
  for (std::uint32_t port = kMinSourcePort; port <= kMaxSourcePort; ++port) {
    const std::uint32_t label = flow_label_of_source_port(static_cast<std::uint16_t>(port));
    ASSERT_NE(label, 0U) << port;
    ASSERT_EQ(source_port_of_flow_label(label), port);
  }
}

}  // namespace
}  // namespace te::roce
