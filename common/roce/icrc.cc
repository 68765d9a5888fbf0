// SPDX-License-Identifier: Apache-2.0
#include "common/roce/icrc.h"

#include <zlib.h>

#include <algorithm>
#include <array>

#include "common/roce/headers.h"

namespace te::roce {
namespace {

constexpr std::size_t kLrhBytes = 8;  // the masked InfiniBand local route header that RoCE has not
constexpr std::uint8_t kMasked = 0xFF;

std::uint32_t crc32_of(std::uint32_t crc, std::span<const std::uint8_t> bytes) {
  return static_cast<std::uint32_t>(crc32_z(crc, bytes.data(), bytes.size()));
}

// Fields that routers change are all ones: TOS, TTL and checksum; traffic class, flow label and hop limit.
void mask_ip_header(std::span<std::uint8_t> ip, bool is_v4) {
  if (is_v4) {
    ip[1] = ip[8] = ip[10] = ip[11] = kMasked;
  } else {
    ip[0] |= 0x0F;
    ip[1] = ip[2] = ip[3] = ip[7] = kMasked;
  }
}

}  // namespace

Result<std::uint32_t> icrc(std::span<const std::uint8_t> ip) {
  const int version = ip.empty() ? 0 : ip[0] >> 4;
  const bool is_v4 = version == 4;
  if (!is_v4 && version != 6) return Error{"ICRC: not an IPv4 or IPv6 header"};
  if (is_v4 && (ip[0] & 0x0F) != 5) return Error{"ICRC: IPv4 options are not RoCEv2"};
  const std::size_t ip_bytes = is_v4 ? kIpv4Bytes : kIpv6Bytes;
  const std::size_t header_bytes = ip_bytes + kUdpBytes + kBthBytes;
  if (ip.size() < header_bytes + kIcrcBytes) return Error{"ICRC: packet too short for UDP, BTH and ICRC"};

  std::array<std::uint8_t, kLrhBytes + kIpv6Bytes + kUdpBytes + kBthBytes> head;
  head.fill(kMasked);
  std::copy_n(ip.begin(), header_bytes, head.begin() + kLrhBytes);
  const auto masked = std::span(head).subspan(kLrhBytes, header_bytes);
  mask_ip_header(masked, is_v4);
  masked[ip_bytes + 6] = masked[ip_bytes + 7] = kMasked;  // UDP checksum
  masked[ip_bytes + kUdpBytes + 4] = kMasked;             // BTH: FECN, BECN, reserved

  const std::uint32_t crc = crc32_of(0, std::span(head).first(kLrhBytes + header_bytes));
  return crc32_of(crc, ip.subspan(header_bytes, ip.size() - header_bytes - kIcrcBytes));
}

std::uint32_t icrc_delta(std::uint16_t xor_bytes, std::uint32_t bytes_after) {
  const std::array<std::uint8_t, 2> changed{static_cast<std::uint8_t>(xor_bytes & 0xFF),
                                            static_cast<std::uint8_t>(xor_bytes >> 8)};
  const std::array<std::uint8_t, 2> zero{};
  const std::uint32_t delta = crc32_of(0, changed) ^ crc32_of(0, zero);
  return static_cast<std::uint32_t>(crc32_combine(delta, 0, static_cast<z_off_t>(bytes_after)));
}

}  // namespace te::roce
