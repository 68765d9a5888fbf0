// SPDX-License-Identifier: Apache-2.0
#include "common/roce/icrc.h"

#include <gtest/gtest.h>

#include <array>
#include <random>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "common/roce/packet.h"

namespace te::roce {
namespace {

std::vector<std::uint8_t> from_hex(std::string_view hex) {
  std::vector<std::uint8_t> bytes;
  for (std::size_t i = 0; i + 1 < hex.size(); i += 2) {
    bytes.push_back(static_cast<std::uint8_t>(std::stoul(std::string(hex.substr(i, 2)), nullptr, 16)));
  }
  return bytes;
}

std::string to_hex(std::span<const std::uint8_t> bytes) {
  constexpr std::string_view kDigits = "0123456789abcdef";
  std::string text;
  for (const std::uint8_t byte : bytes) text.append({kDigits[byte >> 4], kDigits[byte & 15]});
  return text;
}

std::uint32_t little_endian_end(std::span<const std::uint8_t> ip) {
  const auto end = ip.last(4);
  return std::uint32_t{end[0]} | std::uint32_t{end[1]} << 8 | std::uint32_t{end[2]} << 16 | std::uint32_t{end[3]} << 24;
}

// A CNP captured on a ConnectX-4 Lx.
constexpr std::string_view kRealCnp =
    "45c2003c718c4000401191610a0011010a001201000012b7002800008100ffff400001180000000000000000000000000000000000000000"
    "82fd002a";

TEST(Icrc, OfACnpOfARealNic) {
  const auto ip = from_hex(kRealCnp);
  EXPECT_EQ(icrc(ip).value(), little_endian_end(ip));
  EXPECT_TRUE(has_valid_icrc(ip));
}

// scapy test/contrib/roce.uts: UC SEND_ONLY of 18 bytes and 2 of pad, migration bit set.
TEST(Icrc, OfScapysVector) {
  constexpr std::array<std::uint8_t, 18> kPayload{0x46, 0x30, 0x81, 0x8b, 0xe2, 0x89, 0x35, 0xd9, 0x0e,
                                                  0x9a, 0x95, 0x50, 0x54, 0x01, 0xbe, 0x88, 0x5e, 0x50};
  Packet packet;
  packet.source = packet.destination = IpAddress::v4({192, 168, 0, 7});
  packet.traffic_class = 1;
  packet.ip_id = 1144;
  packet.source_port = 49152;
  packet.opcode = static_cast<Opcode>(0x24);
  packet.migration_state = true;
  packet.destination_qpn = 211;
  packet.psn = 13571856;
  packet.payload = kPayload;
  const auto ip = build(packet);
  ASSERT_EQ(ip.size(), 64U);
  EXPECT_EQ(to_hex(std::span(ip).subspan(10, 2)), "b4d5");  // IP header checksum of the same vector
  EXPECT_EQ(to_hex(std::span(ip).last(4)), "78f353f3");
}

TEST(Icrc, IgnoresWhatRoutersChange) {
  auto ip = from_hex(kRealCnp);
  const std::uint32_t before = icrc(ip).value();
  ip[1] = 0x03;    // TOS
  ip[8] = 0x3F;    // TTL
  ip[10] ^= 0x5A;  // header checksum
  ip[26] = 0x12;   // UDP checksum
  ip[32] = 0x80;   // FECN
  EXPECT_EQ(icrc(ip).value(), before);
}

TEST(Icrc, CoversTheSourcePort) {
  auto ip = from_hex(kRealCnp);
  const std::uint32_t before = icrc(ip).value();
  ip[20] ^= 1;
  EXPECT_NE(icrc(ip).value(), before);
}

TEST(Icrc, RefusesWhatIsNoRocePacket) {
  const auto ip = from_hex(kRealCnp);
  EXPECT_FALSE(icrc({}));
  EXPECT_FALSE(icrc(std::span(ip).first(43)));
  for (const int version_and_length : {0x35, 0x46, 0x65}) {  // version 3, options, IPv6 cut off
    auto changed = ip;
    changed[0] = static_cast<std::uint8_t>(version_and_length);
    EXPECT_FALSE(icrc(changed).ok()) << version_and_length;
  }
}

/// A packet with everything that the ICRC covers drawn at random.
Packet random_packet(std::mt19937& random, bool v6, std::span<const std::uint8_t> payload) {
  const auto byte = [&random] { return static_cast<std::uint8_t>(random()); };
  Packet packet;
  std::array<std::uint8_t, 16> address{};
  for (auto& b : address) b = byte();
  packet.source = v6 ? IpAddress::v6(address) : IpAddress::v4({byte(), byte(), byte(), byte()});
  for (auto& b : address) b = byte();
  packet.destination = v6 ? IpAddress::v6(address) : IpAddress::v4({byte(), byte(), byte(), byte()});
  packet.source_port = static_cast<std::uint16_t>(random());
  packet.ip_id = static_cast<std::uint16_t>(random());
  packet.flow_label = random() & 0xFFFFF;
  packet.traffic_class = byte();
  packet.opcode = static_cast<Opcode>(random() % 0x12);
  packet.destination_qpn = random() & 0xFFFFFF;
  packet.psn = random() & 0xFFFFFF;
  packet.payload = payload;
  return packet;
}

TEST(Icrc, DeltaEqualsAFullComputationOnRandomPackets) {
  constexpr int kPacketsPerFamily = 10'000;
  std::mt19937 random(1);  // NOLINT(bugprone-random-generator-seed): repeatable
  std::vector<std::uint8_t> payload(4096);
  for (auto& b : payload) b = static_cast<std::uint8_t>(random());
  for (const bool v6 : {false, true}) {
    const std::size_t port_at = v6 ? 40 : 20;
    for (int i = 0; i < kPacketsPerFamily; ++i) {
      auto ip = build(random_packet(random, v6, std::span(payload).first(random() % payload.size())));
      const std::uint32_t before = icrc(ip).value();
      const auto low = static_cast<std::uint8_t>(random());
      const auto high = static_cast<std::uint8_t>(random());
      ip[port_at] ^= low;
      ip[port_at + 1] ^= high;
      const auto bytes_after = static_cast<std::uint32_t>(ip.size() - port_at - 2 - 4);
      const auto change = static_cast<std::uint16_t>(low | high << 8);
      ASSERT_EQ(before ^ icrc_delta(change, bytes_after), icrc(ip).value()) << "v6 " << v6 << " packet " << i;
    }
  }
}

TEST(Icrc, DeltaOfNoChangeIsZero) { EXPECT_EQ(icrc_delta(0, 1000), 0U); }

TEST(Icrc, DeltaIsLinear) { EXPECT_EQ(icrc_delta(0x0003, 0), icrc_delta(0x0001, 0) ^ icrc_delta(0x0002, 0)); }

}  // namespace
}  // namespace te::roce
