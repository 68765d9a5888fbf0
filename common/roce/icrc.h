// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <span>

#include "common/base/result.h"

namespace te::roce {

/// Invariant CRC of a RoCEv2 packet. `ip` starts at the IPv4 (no options) or IPv6 header and ends with the four bytes
/// of the ICRC, which are not read. Store the value little endian. An Error when the packet is too short or not IP.
Result<std::uint32_t> icrc(std::span<const std::uint8_t> ip);
/// What XOR an ICRC takes when two bytes change: `xor_bytes` = old ^ new source port as its two bytes on the wire read
/// little endian; `bytes_after` = bytes that the ICRC covers after those two. CRC is linear over GF(2).
[[nodiscard]] std::uint32_t icrc_delta(std::uint16_t xor_bytes, std::uint32_t bytes_after);

}  // namespace te::roce
