// SPDX-License-Identifier: Apache-2.0
#include "host-agent/core/icmp_quote.h"

#include <algorithm>
#include <array>

#include "common/roce/source_port.h"

namespace te::agent {
namespace {

using Bytes = std::span<const std::uint8_t>;

constexpr std::size_t kIpv4Header = 20;
constexpr std::size_t kIpv6Header = 40;
constexpr std::size_t kIcmpHeader = 8;
constexpr std::size_t kUdpHeader = 8;
constexpr std::size_t kPsnOffset = kUdpHeader + 9;  // three bytes at BTH offset 9
constexpr std::uint8_t kProtocolIcmp = 1;
constexpr std::uint8_t kProtocolUdp = 17;
constexpr std::uint8_t kIcmpv4TimeExceeded = 11;
constexpr std::uint8_t kIcmpv6TimeExceeded = 3;
constexpr std::uint8_t kIcmpv4Unreachable = 3;
constexpr std::uint8_t kIcmpv6Unreachable = 1;
// Codes by which a router says that it has no way on: net or host unreachable or unknown, the same for the type of
// service (RFC 1812); no route, address unreachable (RFC 4443). Others are about ports, sizes and policies.
constexpr std::array<std::uint8_t, 6> kIcmpv4NoWay = {0, 1, 6, 7, 11, 12};
constexpr std::array<std::uint8_t, 2> kIcmpv6NoWay = {0, 3};
// Said by whom the packet was addressed to.
constexpr std::uint8_t kIcmpv4NoListener = 3;
constexpr std::uint8_t kIcmpv6NoListener = 4;

template <std::size_t size>
bool contains(const std::array<std::uint8_t, size>& codes, std::uint8_t code) {
  return std::find(codes.begin(), codes.end(), code) != codes.end();
}

std::uint16_t word_at(Bytes bytes, std::size_t offset) {
  return static_cast<std::uint16_t>(bytes[offset] << 8 | bytes[offset + 1]);
}

IpAddress address_v4(Bytes bytes, std::size_t offset) {
  std::array<std::uint8_t, 4> address{};
  std::copy_n(bytes.begin() + static_cast<std::ptrdiff_t>(offset), address.size(), address.begin());
  return IpAddress::v4(address);
}

IpAddress address_v6(Bytes bytes, std::size_t offset) {
  std::array<std::uint8_t, 16> address{};
  std::copy_n(bytes.begin() + static_cast<std::ptrdiff_t>(offset), address.size(), address.begin());
  return IpAddress::v6(address);
}

/// Length of the IPv4 header at the front, checked against the bytes there are.
Result<std::size_t> ipv4_header_length(Bytes bytes, const char* which) {
  if (bytes.size() < kIpv4Header || bytes[0] >> 4 != 4) return Error{std::string(which) + " is no IPv4 header"};
  const std::size_t length = std::size_t{bytes[0] & 0x0FU} * 4;
  if (length < kIpv4Header || length > bytes.size()) return Error{std::string(which) + " has a wrong length"};
  return length;
}

Result<void> read_udp(Bytes udp, QuotedPacket& quoted) {
  if (udp.size() < kUdpHeader) return Error{"the quote ends before its UDP header does"};
  if (word_at(udp, 2) != roce::kUdpPort) return Error{"the quoted packet is not RoCEv2"};
  quoted.source_port = word_at(udp, 0);
  if (udp.size() >= kPsnOffset + 3) {
    quoted.psn = std::uint32_t{udp[kPsnOffset]} << 16 | std::uint32_t{udp[kPsnOffset + 1]} << 8 | udp[kPsnOffset + 2];
  }
  return {};
}

}  // namespace

Result<IcmpAnswer> parse_icmpv4_answer(Bytes packet) {
  const auto outer = ipv4_header_length(packet, "the message");
  if (!outer) return outer.error();
  if (packet[9] != kProtocolIcmp) return Error{"the message is not ICMP"};
  const Bytes icmp = packet.subspan(*outer);
  if (icmp.size() < kIcmpHeader) return Error{"the ICMP header is cut short"};
  const bool unreachable = icmp[0] == kIcmpv4Unreachable && contains(kIcmpv4NoWay, icmp[1]);
  const bool arrived = icmp[0] == kIcmpv4Unreachable && icmp[1] == kIcmpv4NoListener;
  const bool expired = icmp[0] == kIcmpv4TimeExceeded && icmp[1] == 0;
  if (!unreachable && !arrived && !expired) return Error{"no router's answer to a probe"};
  const Bytes quote = icmp.subspan(kIcmpHeader);
  const auto inner = ipv4_header_length(quote, "the quote");
  if (!inner) return inner.error();
  if (quote[9] != kProtocolUdp) return Error{"the quoted packet is not UDP"};
  if ((word_at(quote, 6) & 0x1FFF) != 0) return Error{"the quoted packet is a later fragment"};
  IcmpAnswer answer;
  answer.unreachable = unreachable;
  answer.responder = address_v4(packet, 12);
  answer.quoted.source = address_v4(quote, 12);
  answer.quoted.destination = address_v4(quote, 16);
  answer.quoted.ip_id = word_at(quote, 4);
  if (auto udp = read_udp(quote.subspan(*inner), answer.quoted); !udp) return std::move(udp).error();
  return answer;
}

Result<IcmpAnswer> parse_icmpv6_answer(Bytes message) {
  if (message.size() < kIcmpHeader) return Error{"the ICMPv6 header is cut short"};
  const bool unreachable = message[0] == kIcmpv6Unreachable && contains(kIcmpv6NoWay, message[1]);
  const bool arrived = message[0] == kIcmpv6Unreachable && message[1] == kIcmpv6NoListener;
  const bool expired = message[0] == kIcmpv6TimeExceeded && message[1] == 0;
  if (!unreachable && !arrived && !expired) return Error{"no router's answer to a probe"};
  const Bytes quote = message.subspan(kIcmpHeader);
  if (quote.size() < kIpv6Header || quote[0] >> 4 != 6) return Error{"the quote is no IPv6 header"};
  if (quote[6] != kProtocolUdp) return Error{"the quoted packet is not plain UDP"};
  IcmpAnswer answer;
  answer.unreachable = unreachable;
  answer.quoted.source = address_v6(quote, 8);
  answer.quoted.destination = address_v6(quote, 24);
  if (auto udp = read_udp(quote.subspan(kIpv6Header), answer.quoted); !udp) return std::move(udp).error();
  return answer;
}

}  // namespace te::agent
