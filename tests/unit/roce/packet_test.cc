// SPDX-License-Identifier: Apache-2.0
#include "common/roce/packet.h"

#include <gtest/gtest.h>

#include <array>
#include <functional>
#include <string>

#include "common/roce/source_port.h"

namespace te::roce {
namespace {

constexpr std::array<std::uint8_t, 7> kPayload{1, 2, 3, 4, 5, 6, 7};

Packet write_only(bool v6) {
  Packet packet;
  packet.source = IpAddress::parse(v6 ? "fd00::1" : "10.0.0.1").value();
  packet.destination = IpAddress::parse(v6 ? "fd00::2" : "10.0.0.2").value();
  packet.source_port = 0xC123;
  packet.traffic_class = 0x6A;
  packet.flow_label = v6 ? 0x12345 : 0;
  packet.ip_id = v6 ? 0 : 0x4321;
  packet.opcode = Opcode::kWriteOnlyImmediate;
  packet.ack_request = true;
  packet.destination_qpn = 0xABCDEF;
  packet.psn = 0xFFFFFE;
  packet.reth = Reth{.address = 0x1122334455667788, .rkey = 0x99AABBCC, .length_bytes = 7};
  packet.immediate = 0xDEADBEEF;
  packet.payload = kPayload;
  return packet;
}

class PacketOfFamily : public testing::TestWithParam<bool> {};

INSTANTIATE_TEST_SUITE_P(Families, PacketOfFamily, testing::Values(false, true),
                         [](const auto& row) { return row.param ? "v6" : "v4"; });

TEST_P(PacketOfFamily, ComesBackFromItsBytes) {
  const Packet sent = write_only(GetParam());
  const auto bytes = build(sent);
  ASSERT_EQ(bytes.size(), size_of(sent));
  const auto parsed = parse(bytes);
  ASSERT_TRUE(parsed) << parsed.error().message;
  const Packet& got = *parsed;
  EXPECT_EQ(got.source, sent.source);
  EXPECT_EQ(got.destination, sent.destination);
  EXPECT_EQ(got.source_port, sent.source_port);
  EXPECT_EQ(got.traffic_class, sent.traffic_class);
  EXPECT_EQ(got.hop_limit, sent.hop_limit);
  EXPECT_EQ(got.ip_id, sent.ip_id);
  EXPECT_EQ(got.flow_label, sent.flow_label);
  EXPECT_EQ(got.opcode, sent.opcode);
  EXPECT_EQ(got.ack_request, sent.ack_request);
  EXPECT_EQ(got.destination_qpn, sent.destination_qpn);
  EXPECT_EQ(got.psn, sent.psn);
  EXPECT_EQ(got.reth->address, sent.reth->address);
  EXPECT_EQ(got.reth->rkey, sent.reth->rkey);
  EXPECT_EQ(got.reth->length_bytes, sent.reth->length_bytes);
  EXPECT_EQ(got.immediate, sent.immediate);
  EXPECT_TRUE(std::equal(got.payload.begin(), got.payload.end(), kPayload.begin(), kPayload.end()));
}

TEST_P(PacketOfFamily, CarriesAValidIcrcUntilAByteChanges) {
  auto bytes = build(write_only(GetParam()));
  EXPECT_TRUE(has_valid_icrc(bytes));
  bytes[bytes.size() - 6] ^= 1;
  EXPECT_FALSE(has_valid_icrc(bytes));
}

TEST_P(PacketOfFamily, IsReadWithLinkPaddingBehindIt) {
  auto bytes = build(write_only(GetParam()));
  bytes.insert(bytes.end(), 9, 0);
  const auto parsed = parse(bytes);
  ASSERT_TRUE(parsed);
  EXPECT_EQ(parsed->payload.size(), kPayload.size());
  EXPECT_TRUE(has_valid_icrc(bytes));
}

TEST_P(PacketOfFamily, IsRefusedAtEveryTruncation) {
  const auto bytes = build(write_only(GetParam()));
  for (std::size_t size = 0; size < bytes.size(); ++size) {
    ASSERT_FALSE(parse(std::span(bytes).first(size)).ok()) << size;
    ASSERT_FALSE(has_valid_icrc(std::span(bytes).first(size))) << size;
  }
}

TEST_P(PacketOfFamily, CnpHasSixteenReservedBytesAndNoPayload) {
  Packet cnp = write_only(GetParam());
  cnp.opcode = Opcode::kCnp;
  cnp.backward_congestion = true;
  cnp.payload = {};
  const auto bytes = build(cnp);
  EXPECT_EQ(bytes.size(), GetParam() ? 80U : 60U);
  const auto parsed = parse(bytes);
  ASSERT_TRUE(parsed);
  EXPECT_TRUE(parsed->backward_congestion);
  EXPECT_TRUE(parsed->payload.empty());
}

TEST(Packet, Ipv6HasAUdpChecksumThatSumsToAllOnes) {
  const auto bytes = build(write_only(true));
  std::uint32_t sum = 17 + static_cast<std::uint32_t>(bytes.size() - 40);
  for (std::size_t i = 8; i < bytes.size(); i += 2) sum += std::uint32_t{bytes[i]} << 8 | bytes[i + 1];
  while (sum >> 16 != 0) sum = (sum & 0xFFFF) + (sum >> 16);
  EXPECT_EQ(sum, 0xFFFFU);
}

struct Malformed {
  const char* name;
  std::function<void(std::vector<std::uint8_t>&)> spoil;
  const char* message;
};

TEST(Packet, SaysWhatIsMalformed) {
  const Malformed rows[] = {
      {"version", [](auto& b) { b[0] = 0x55; }, "not an IPv4"},
      {"options", [](auto& b) { b[0] = 0x46; }, "options"},
      {"fragment", [](auto& b) { b[7] = 1; }, "fragment"},
      {"more fragments", [](auto& b) { b[6] = 0x20; }, "fragment"},
      {"TCP", [](auto& b) { b[9] = 6; }, "not UDP"},
      {"IP length too long", [](auto& b) { b[3]++; }, "cut off"},
      {"IP length too short", [](auto& b) { b[2] = 0, b[3] = 19; }, "shorter"},
      {"no room for UDP", [](auto& b) { b[2] = 0, b[3] = 24; }, "UDP header"},
      {"other port", [](auto& b) { b[22] = 0; }, "4791"},
      {"UDP length", [](auto& b) { b[25]--; }, "UDP length"},
      {"transport version", [](auto& b) { b[29] |= 1; }, "transport version"},
      {"no room for BTH", [](auto& b) { b[3] = 40, b[25] = 20; }, "BTH"},
      {"no room for the extension", [](auto& b) { b[3] = 50, b[25] = 30; }, "extension"},
  };
  for (const auto& row : rows) {
    auto bytes = build(write_only(false));
    row.spoil(bytes);
    const auto parsed = parse(bytes);
    ASSERT_FALSE(parsed) << row.name;
    EXPECT_NE(parsed.error().message.find(row.message), std::string::npos)
        << row.name << ": " << parsed.error().message;
  }
}

TEST(Packet, KnowsWhichOpcodesCarryWhichHeader) {
  for (int code = 0; code < 256; ++code) {
    const auto opcode = static_cast<Opcode>(code);
    EXPECT_EQ(carries_reth(opcode), code == 0x06 || code == 0x0A || code == 0x0B || code == 0x0C) << code;
    EXPECT_EQ(carries_aeth(opcode), code == 0x0D || (code >= 0x0F && code <= 0x12)) << code;
    EXPECT_EQ(carries_immediate(opcode), code == 0x03 || code == 0x05 || code == 0x09 || code == 0x0B) << code;
  }
}

}  // namespace
}  // namespace te::roce
