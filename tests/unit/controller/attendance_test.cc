// SPDX-License-Identifier: Apache-2.0
#include "te-controller/engine/attendance.h"

#include <gtest/gtest.h>

#include "tests/support/moments.h"
#include "topology/builder.h"

namespace te {
namespace {

constexpr std::int64_t kInterval = kSecond / 2;
constexpr std::int64_t kBackNs = Attendance::kIntervals * kInterval;

class AttendanceTest : public ::testing::Test {
 protected:
  void comes(const std::string& node, std::int64_t now_ns) {
    v1::Hello hello;
    hello.set_protocol_version(1);
    ASSERT_TRUE(fleet.connect(node, hello, now_ns));
    ASSERT_TRUE(fleet.apply(node, v1::FlowUpdate(), now_ns));
  }
  void goes(const std::string& node, std::int64_t now_ns) {
    attendance.leaves(node, now_ns);
    fleet.disconnect(node, now_ns);
  }
  Fabric fabric = build_clos({.leaves = 2, .hosts_per_leaf = 1, .spines = 1});
  Fleet fleet{fabric};
  Attendance attendance{fleet, kStart, kInterval};
};

TEST_F(AttendanceTest, WaitsAtTheStartForEveryHostUntilItHasReportedForSomeIntervals) {
  EXPECT_EQ(attendance.missing(kStart), "h1");
  comes("h1", kStart);
  EXPECT_EQ(attendance.missing(kStart + kBackNs - 1), "h1");
  EXPECT_EQ(attendance.missing(kStart + kBackNs), "h2");
  comes("h2", kStart + kSecond);
  EXPECT_EQ(attendance.missing(kStart + kSecond + kBackNs), "");
}

TEST_F(AttendanceTest, WaitsForNobodyForever) { EXPECT_EQ(attendance.missing(kStart + Attendance::kReturnNs), ""); }

TEST_F(AttendanceTest, WaitsForAHostThatLeft) {
  comes("h1", kStart);
  comes("h2", kStart);
  const std::int64_t left_ns = kStart + 100 * kSecond;
  goes("h2", left_ns);
  EXPECT_EQ(attendance.missing(left_ns + kSecond), "h2");
  comes("h2", left_ns + kSecond);
  EXPECT_EQ(attendance.missing(left_ns + kSecond + kBackNs), "");
}

TEST_F(AttendanceTest, WaitsForNoHostThatComesAndGoes) {
  comes("h1", kStart);
  comes("h2", kStart);
  std::int64_t now_ns = kStart + 100 * kSecond;
  goes("h2", now_ns);
  for (int times = 0; times < 10; ++times) {
    comes("h2", now_ns += kSecond);
    goes("h2", now_ns += 2 * kSecond);
  }
  EXPECT_EQ(attendance.missing(now_ns), "");
}

TEST_F(AttendanceTest, WaitsForNoSwitch) {
  comes("h1", kStart);
  comes("h2", kStart);
  v1::Hello hello;
  hello.set_protocol_version(1);
  hello.set_role("switch");
  ASSERT_TRUE(fleet.connect("leaf1", hello, kStart));
  EXPECT_EQ(attendance.missing(kStart + kBackNs), "");
}

}  // namespace
}  // namespace te
