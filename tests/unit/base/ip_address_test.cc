// SPDX-License-Identifier: Apache-2.0
#include "common/base/ip_address.h"

#include <gtest/gtest.h>

#include <string>
#include <unordered_set>
#include <vector>

namespace te {
namespace {

TEST(IpAddress, IsUnsetAtFirst) {
  const IpAddress address;
  EXPECT_FALSE(address.is_set());
  EXPECT_TRUE(address.bytes().empty());
  EXPECT_EQ(address.to_string(), "-");
}

TEST(IpAddress, ReadsIpv4) {
  const auto address = IpAddress::parse("10.1.2.3");
  ASSERT_TRUE(address.ok());
  EXPECT_TRUE(address->is_v4());
  EXPECT_EQ(address->to_bytes(), std::string("\x0a\x01\x02\x03", 4));
}

TEST(IpAddress, ReadsIpv6) {
  const auto address = IpAddress::parse("fd00::1");
  ASSERT_TRUE(address.ok());
  EXPECT_TRUE(address->is_v6());
  EXPECT_EQ(address->bytes().size(), 16U);
}

TEST(IpAddress, WritesTheShortForm) { EXPECT_EQ(IpAddress::parse("fd00:0:0::0:1")->to_string(), "fd00::1"); }

TEST(IpAddress, RefusesOtherText) {
  for (const char* text : {"", "10.1.2", "10.1.2.3.4", "10.1.2.256", "h1", "fd00::1%eth0", " 10.1.2.3", "::1::"}) {
    const auto address = IpAddress::parse(text);
    ASSERT_FALSE(address.ok()) << text;
    EXPECT_NE(address.error().message.find("'" + std::string(text) + "'"), std::string::npos);
  }
}

TEST(IpAddress, GoesThroughBytesAndBack) {
  for (const char* text : {"192.0.2.7", "2001:db8::42"}) {
    const IpAddress address = *IpAddress::parse(text);
    EXPECT_EQ(*IpAddress::from_bytes(address.bytes()), address);
  }
}

TEST(IpAddress, RefusesOtherLengths) {
  for (const std::size_t length : {0U, 3U, 5U, 15U, 17U}) {
    EXPECT_FALSE(IpAddress::from_bytes(std::vector<std::uint8_t>(length)).ok()) << length;
  }
}

TEST(IpAddress, FamiliesAreNeverEqual) {
  EXPECT_NE(*IpAddress::parse("0.0.0.0"), *IpAddress::parse("::"));
  EXPECT_NE(*IpAddress::parse("0.0.0.0"), IpAddress());
}

TEST(IpAddress, OrdersByFamilyThenBytes) {
  EXPECT_LT(*IpAddress::parse("10.0.0.2"), *IpAddress::parse("10.0.0.10"));
  EXPECT_LT(*IpAddress::parse("255.255.255.255"), *IpAddress::parse("::1"));
}

TEST(IpAddress, IsAKeyOfHashTables) {
  const std::unordered_set<IpAddress> set{*IpAddress::parse("10.0.0.1"), *IpAddress::parse("10.0.0.1"),
                                          *IpAddress::parse("::1")};
  EXPECT_EQ(set.size(), 2U);
}

// Test vectors of the authors: http://www.isthe.com/chongo/tech/comp/fnv/ (FNV-1a, 64 bits).
TEST(Fnv1a, MatchesThePublishedVectors) {
  const auto hash = [](const std::string& text) { return fnv1a(std::vector<std::uint8_t>(text.begin(), text.end())); };
  EXPECT_EQ(hash(""), 0xcbf29ce484222325ULL);
  EXPECT_EQ(hash("a"), 0xaf63dc4c8601ec8cULL);
  EXPECT_EQ(hash("foobar"), 0x85944171f73967e8ULL);
}

}  // namespace
}  // namespace te
