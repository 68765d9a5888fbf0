// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <optional>
#include <span>

#include "common/base/ip_address.h"
#include "common/base/result.h"

namespace te::agent {

/// The RoCEv2 packet that a router quotes when it could not pass it on.
struct QuotedPacket {
  IpAddress source;
  IpAddress destination;
  std::uint16_t source_port = 0;
  std::uint16_t ip_id = 0;           ///< IPv4 only
  std::optional<std::uint32_t> psn;  ///< of the BTH, when the quote is long enough (RFC 4443: IPv6 always is)
};

/// What a router says of a packet to UDP port 4791: that its hop limit ran out there, that there is no way on, or (of
/// one addressed to the router itself) that nobody listens there.
struct IcmpAnswer {
  IpAddress responder;  ///< unset for IPv6: the socket tells
  QuotedPacket quoted;
  bool unreachable = false;  ///< no way on, whatever the hop limit
};

/// Reads what a raw IPPROTO_ICMP socket gives: IPv4 header, ICMP, quoted IPv4 header and at least its first 8 bytes
/// (RFC 792). An Error for any other or malformed message.
Result<IcmpAnswer> parse_icmpv4_answer(std::span<const std::uint8_t> packet);
/// Reads what a raw IPPROTO_ICMPV6 socket gives: the ICMPv6 message (RFC 4443), no IPv6 header.
Result<IcmpAnswer> parse_icmpv6_answer(std::span<const std::uint8_t> message);

}  // namespace te::agent
