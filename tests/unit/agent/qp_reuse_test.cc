// SPDX-License-Identifier: Apache-2.0
#include "host-agent/core/qp_reuse.h"

#include <gtest/gtest.h>

#include "tests/unit/agent/samples.h"

namespace te::agent {
namespace {

using Keys = std::vector<FlowKey>;

/// An egress flow to QPN `remote` of the queue pair (local, remote).
FlowRecord flow(std::uint32_t local, std::uint32_t remote, std::uint16_t steer_port = 50000) {
  FlowRecord made = test::egress("10.0.0.1", "10.0.0.2", remote);
  made.steer_port = steer_port;
  made.local_qpn = local;
  made.remote_qpn = remote;
  return made;
}

QueuePair pair(std::uint32_t local, std::uint32_t remote) { return {"mlx5_0", local, remote}; }

TEST(QpReuse, QueuePairThatStaysIsNone) {
  QpReuse reuse;
  for (int i = 0; i < 3; ++i) EXPECT_TRUE(reuse.check(std::vector{flow(7, 17)}, std::vector{pair(7, 17)}).empty());
}

TEST(QpReuse, QueuePairThatIsGoneIsNoneYet) {
  QpReuse reuse;
  EXPECT_TRUE(reuse.check(std::vector{flow(7, 17)}, std::vector{pair(7, 17)}).empty());
  EXPECT_TRUE(reuse.check(std::vector{flow(7, 17)}, {}).empty());
  EXPECT_TRUE(reuse.check(std::vector{flow(7, 17)}, std::vector{pair(7, 17)}).empty()) << "the same came back";
}

TEST(QpReuse, LocalQpnWithAnotherRemoteIsToldOnce) {
  QpReuse reuse;
  EXPECT_TRUE(reuse.check(std::vector{flow(7, 17)}, std::vector{pair(7, 17)}).empty());
  EXPECT_TRUE(reuse.check(std::vector{flow(7, 17)}, {}).empty());
  FlowRecord unpaired = flow(7, 17);
  unpaired.local_qpn.reset();
  EXPECT_EQ(reuse.check(std::vector{unpaired}, std::vector{pair(7, 99)}), Keys{unpaired.key});
  EXPECT_TRUE(reuse.check(std::vector{unpaired}, std::vector{pair(7, 99)}).empty());
}

TEST(QpReuse, ChangeBetweenTwoReadingsIsNoticedToo) {
  QpReuse reuse;
  EXPECT_TRUE(reuse.check(std::vector{flow(7, 17)}, std::vector{pair(7, 17)}).empty());
  EXPECT_EQ(reuse.check(std::vector{flow(7, 17)}, std::vector{pair(7, 99)}), Keys{flow(7, 17).key});
}

TEST(QpReuse, SameLocalQpnOfAnotherDeviceBesideItIsNone) {
  QpReuse reuse;
  const std::vector both{pair(7, 17), QueuePair{"mlx5_1", 7, 99}};
  for (int i = 0; i < 2; ++i) EXPECT_TRUE(reuse.check(std::vector{flow(7, 17)}, both).empty());
}

TEST(QpReuse, FlowsThatAreNotSteeredOrNotPairedDoNotMatter) {
  QpReuse reuse;
  FlowRecord unpaired = flow(8, 18);
  unpaired.local_qpn.reset();
  const std::vector flows{flow(7, 17, 0), unpaired};
  EXPECT_TRUE(reuse.check(flows, std::vector{pair(7, 17), pair(8, 18)}).empty());
  EXPECT_TRUE(reuse.check(flows, std::vector{pair(7, 99), pair(8, 99)}).empty());
}

}  // namespace
}  // namespace te::agent
