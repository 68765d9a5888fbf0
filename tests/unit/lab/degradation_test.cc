// SPDX-License-Identifier: Apache-2.0
#include "lab/degradation.h"

#include <gtest/gtest.h>

namespace te::lab {
namespace {

TEST(Percent, IsReadAsAShareOfOne) {
  EXPECT_DOUBLE_EQ(*parse_percent("1%"), 0.01);
  EXPECT_DOUBLE_EQ(*parse_percent("0.25%"), 0.0025);
  EXPECT_DOUBLE_EQ(*parse_percent("100%"), 1.0);
}

TEST(Percent, IsRefusedWithoutItsSignOrOutOfRange) {
  for (const char* text : {"", "%", "1", "0.01", "0%", "-1%", "100.1%", "1%%", "1 %", "nan%", "inf%", "1e1%", "x%"}) {
    EXPECT_FALSE(parse_percent(text).ok()) << text;
  }
}

TEST(LossThreshold, CoversThatShareOfAll32BitNumbers) {
  EXPECT_EQ(loss_threshold(1.0), std::uint64_t{1} << 32);
  EXPECT_EQ(loss_threshold(0.5), std::uint64_t{1} << 31);
  EXPECT_EQ(loss_threshold(0.01), 42'949'673U);
  EXPECT_EQ(loss_threshold(0.0), 0U);
}

TEST(Degradation, IsReadAsItWasWritten) {
  for (const Degradation& degradation : {Degradation{0.0025, 1e7}, Degradation{1, 0}, Degradation{0, 12345678}}) {
    const auto read = read_degradation(degradation_json(degradation), "x");
    ASSERT_TRUE(read.ok());
    EXPECT_EQ(*read, degradation);
  }
}

TEST(Degradation, NamesItsFileWhenItCannotBeRead) {
  const auto read = read_degradation("{\"loss\": 2}", "/run/x");
  ASSERT_FALSE(read.ok());
  EXPECT_NE(read.error().message.find("/run/x"), std::string::npos);
}

}  // namespace
}  // namespace te::lab
