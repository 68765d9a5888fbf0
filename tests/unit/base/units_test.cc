// SPDX-License-Identifier: Apache-2.0
#include "common/base/units.h"

#include <gtest/gtest.h>

namespace te {
namespace {

TEST(ParseRate, KnowsItsSuffixes) {
  EXPECT_EQ(*parse_rate_bps("800"), 800);
  EXPECT_EQ(*parse_rate_bps("800bit"), 800);
  EXPECT_EQ(*parse_rate_bps("64kbit"), 64e3);
  EXPECT_EQ(*parse_rate_bps("50mbit"), 50e6);
  EXPECT_EQ(*parse_rate_bps("400gbit"), 400e9);
}

TEST(ParseRate, TakesFractions) { EXPECT_EQ(*parse_rate_bps("2.5gbit"), 2.5e9); }

TEST(ParseRate, RefusesWhatIsNoRate) {
  for (const char* text :
       {"", "mbit", "0mbit", "-1mbit", "1 mbit", "1mbps", "1Mbit", "nan", "inf", "1e999gbit", "0x10"}) {
    EXPECT_FALSE(parse_rate_bps(text).ok()) << text;
  }
}

TEST(ParseRate, SaysWhatToWrite) {
  EXPECT_EQ(parse_rate_bps("fast").error().message,
            "'fast' is not a rate; write a positive number and bit, kbit, mbit or gbit, as in 400gbit");
}

TEST(FormatRate, HasThreeDigitsAndAUnit) {
  EXPECT_EQ(format_rate_bps(0), "0 bit/s");
  EXPECT_EQ(format_rate_bps(999), "999 bit/s");
  EXPECT_EQ(format_rate_bps(12345), "12.3 kbit/s");
  EXPECT_EQ(format_rate_bps(49.3e6), "49.3 Mbit/s");
  EXPECT_EQ(format_rate_bps(400e9), "400 Gbit/s");
  EXPECT_EQ(format_rate_bps(-2e6), "-2 Mbit/s");
}

TEST(FormatDuration, ChoosesItsUnits) {
  EXPECT_EQ(format_duration_s(0.35), "350 ms");
  EXPECT_EQ(format_duration_s(12.4), "12.4 s");
  EXPECT_EQ(format_duration_s(200), "3 min 20 s");
  EXPECT_EQ(format_duration_s(7500), "2 h 5 min");
}

}  // namespace
}  // namespace te
