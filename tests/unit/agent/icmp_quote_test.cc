// SPDX-License-Identifier: Apache-2.0
#include "host-agent/core/icmp_quote.h"

#include <gtest/gtest.h>

#include <algorithm>

#include "host-agent/core/probe_packet.h"
#include "tests/unit/agent/samples.h"

namespace te::agent {
namespace {

using Bytes = std::vector<std::uint8_t>;

Probe probe(const std::string& source, const std::string& destination) {
  return {1, test::key(source, destination, 0x1234), 0x54321, 50001, 2, 777};
}

Bytes join(Bytes left, std::span<const std::uint8_t> right) {
  left.insert(left.end(), right.begin(), right.end());
  return left;
}

/// What a raw socket gives when 10.9.9.9 quotes the first `quoted` bytes of a probe.
Bytes answer_v4(std::size_t quoted) {
  const Bytes sent = probe_packet(probe("10.0.0.1", "10.0.0.2"));
  const Bytes outer = {0x45, 0, 0, 0, 0, 0, 0, 0, 64, 1, 0, 0, 10, 9, 9, 9, 10, 0, 0, 1, 11, 0, 0, 0, 0, 0, 0, 0};
  return join(outer, std::span(sent).first(std::min(quoted, sent.size())));
}

Bytes answer_v6(std::size_t quoted) {
  const Bytes sent = probe_packet(probe("fd00::1", "fd00::2"));
  return join({3, 0, 0, 0, 0, 0, 0, 0}, std::span(sent).first(std::min(quoted, sent.size())));
}

TEST(IcmpQuote, ReadsTheAnswerToAnIpv4Probe) {
  const auto exceeded = parse_icmpv4_answer(answer_v4(1000));
  ASSERT_TRUE(exceeded) << exceeded.error().message;
  EXPECT_EQ(exceeded->responder, test::ip("10.9.9.9"));
  EXPECT_EQ(exceeded->quoted.source, test::ip("10.0.0.1"));
  EXPECT_EQ(exceeded->quoted.destination, test::ip("10.0.0.2"));
  EXPECT_EQ(exceeded->quoted.source_port, 50001);
  EXPECT_EQ(exceeded->quoted.ip_id, 777);
}

TEST(IcmpQuote, EightBytesAfterTheIpHeaderAreEnough) {
  const auto exceeded = parse_icmpv4_answer(answer_v4(28));
  ASSERT_TRUE(exceeded) << exceeded.error().message;
  EXPECT_EQ(exceeded->quoted.ip_id, 777);
  EXPECT_EQ(exceeded->quoted.psn, std::nullopt);
}

TEST(IcmpQuote, ReadsTheAnswerToAnIpv6Probe) {
  const auto exceeded = parse_icmpv6_answer(answer_v6(1000));
  ASSERT_TRUE(exceeded) << exceeded.error().message;
  EXPECT_FALSE(exceeded->responder.is_set());
  EXPECT_EQ(exceeded->quoted.source, test::ip("fd00::1"));
  EXPECT_EQ(exceeded->quoted.source_port, 50001);
  EXPECT_EQ(exceeded->quoted.psn, 777U);
}

TEST(IcmpQuote, ReadsThroughIpOptions) {
  Bytes packet = answer_v4(1000);
  packet[0] = 0x46;
  packet.insert(packet.begin() + 20, {1, 1, 1, 1});
  const auto exceeded = parse_icmpv4_answer(packet);
  ASSERT_TRUE(exceeded) << exceeded.error().message;
  EXPECT_EQ(exceeded->quoted.source_port, 50001);
}

TEST(IcmpQuote, ShorterQuotesAreErrors) {
  for (std::size_t quoted = 0; quoted < 28; ++quoted) EXPECT_FALSE(parse_icmpv4_answer(answer_v4(quoted)).ok());
  for (std::size_t quoted = 0; quoted < 48; ++quoted) EXPECT_FALSE(parse_icmpv6_answer(answer_v6(quoted)).ok());
}

TEST(IcmpQuote, EveryCutIsSurvived) {
  const Bytes v4 = answer_v4(1000);
  for (std::size_t length = 0; length < 56; ++length) {
    EXPECT_FALSE(parse_icmpv4_answer(std::span(v4).first(length)).ok()) << length;
  }
}

TEST(IcmpQuote, HeaderLengthBeyondTheBytesIsAnError) {
  Bytes outer = answer_v4(28);
  outer[0] = 0x4F;
  EXPECT_FALSE(parse_icmpv4_answer(outer).ok());
  Bytes inner = answer_v4(28);
  inner[28] = 0x4F;
  EXPECT_FALSE(parse_icmpv4_answer(inner).ok());
}

TEST(IcmpQuote, HeaderLengthBelowTheLeastIsAnError) {
  Bytes inner = answer_v4(1000);
  inner[28] = 0x41;
  EXPECT_FALSE(parse_icmpv4_answer(inner).ok());
}

TEST(IcmpQuote, OtherIcmpTypesAreErrors) {
  Bytes redirect = answer_v4(1000);
  redirect[20] = 5;
  EXPECT_FALSE(parse_icmpv4_answer(redirect).ok());
  Bytes reassembly = answer_v6(1000);
  reassembly[1] = 1;
  EXPECT_FALSE(parse_icmpv6_answer(reassembly).ok());
}

TEST(IcmpQuote, RouterWithoutAWayOnIsToldFromOneWhereTheHopLimitRanOut) {
  EXPECT_FALSE(parse_icmpv4_answer(answer_v4(1000))->unreachable);
  EXPECT_FALSE(parse_icmpv6_answer(answer_v6(1000))->unreachable);
  Bytes v4 = answer_v4(1000);
  v4[20] = 3;
  for (const int code : {0, 1, 6, 7, 11, 12}) {
    v4[21] = static_cast<std::uint8_t>(code);
    const auto answer = parse_icmpv4_answer(v4);
    ASSERT_TRUE(answer) << code;
    EXPECT_TRUE(answer->unreachable) << code;
    EXPECT_EQ(answer->quoted.ip_id, 777);
  }
  Bytes v6 = answer_v6(1000);
  v6[0] = 1;
  for (const int code : {0, 3}) {
    v6[1] = static_cast<std::uint8_t>(code);
    const auto answer = parse_icmpv6_answer(v6);
    ASSERT_TRUE(answer) << code;
    EXPECT_TRUE(answer->unreachable) << code;
    EXPECT_EQ(answer->quoted.psn, 777U);
  }
}

TEST(IcmpQuote, SizesAndPoliciesAreNoAnswers) {
  Bytes v4 = answer_v4(1000);
  v4[20] = 3;
  for (const int code : {2, 4, 5, 8, 9, 10, 13, 14, 15}) {
    v4[21] = static_cast<std::uint8_t>(code);
    EXPECT_FALSE(parse_icmpv4_answer(v4).ok()) << code;
  }
  Bytes v6 = answer_v6(1000);
  v6[0] = 1;
  for (const int code : {1, 2, 5, 6, 7}) {
    v6[1] = static_cast<std::uint8_t>(code);
    EXPECT_FALSE(parse_icmpv6_answer(v6).ok()) << code;
  }
}

TEST(IcmpQuote, WhoIsAddressedAndDoesNotListenIsThere) {
  Bytes v4 = answer_v4(1000);
  v4[20] = v4[21] = 3;
  ASSERT_TRUE(parse_icmpv4_answer(v4).ok());
  EXPECT_FALSE(parse_icmpv4_answer(v4)->unreachable);
  Bytes v6 = answer_v6(1000);
  v6[0] = 1;
  v6[1] = 4;
  ASSERT_TRUE(parse_icmpv6_answer(v6).ok());
  EXPECT_FALSE(parse_icmpv6_answer(v6)->unreachable);
}

TEST(IcmpQuote, OtherUdpPortsAreErrors) {
  Bytes packet = answer_v4(1000);
  packet[28 + 20 + 2] ^= 1;
  EXPECT_FALSE(parse_icmpv4_answer(packet).ok());
}

TEST(IcmpQuote, QuoteOfALaterFragmentIsAnError) {
  Bytes packet = answer_v4(1000);
  packet[28 + 7] = 1;
  EXPECT_FALSE(parse_icmpv4_answer(packet).ok());
}

TEST(IcmpQuote, Ipv6ExtensionHeadersAreErrors) {
  Bytes message = answer_v6(1000);
  message[8 + 6] = 0;
  EXPECT_FALSE(parse_icmpv6_answer(message).ok());
}

}  // namespace
}  // namespace te::agent
