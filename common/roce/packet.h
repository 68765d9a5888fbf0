// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <optional>
#include <span>
#include <vector>

#include "common/base/ip_address.h"
#include "common/base/result.h"

namespace te::roce {

/// BTH opcodes of the reliable connection service, and CNP.
enum class Opcode : std::uint8_t {
  kSendFirst = 0x00,
  kSendMiddle = 0x01,
  kSendLast = 0x02,
  kSendLastImmediate = 0x03,
  kSendOnly = 0x04,
  kSendOnlyImmediate = 0x05,
  kWriteFirst = 0x06,
  kWriteMiddle = 0x07,
  kWriteLast = 0x08,
  kWriteLastImmediate = 0x09,
  kWriteOnly = 0x0A,
  kWriteOnlyImmediate = 0x0B,
  kReadRequest = 0x0C,
  kReadResponseFirst = 0x0D,
  kReadResponseMiddle = 0x0E,
  kReadResponseLast = 0x0F,
  kReadResponseOnly = 0x10,
  kAcknowledge = 0x11,
  kAtomicAcknowledge = 0x12,
  kCompareSwap = 0x13,
  kFetchAdd = 0x14,
  kCnp = 0x81,
};

/// AETH syndromes: ACK 0x00..0x1F (credits; 0x1F none), RNR NAK 0x20 | timer, NAKs below.
inline constexpr std::uint8_t kSyndromeAck = 0x1F;
inline constexpr std::uint8_t kSyndromeRnrNak = 0x20;
inline constexpr std::uint8_t kSyndromeNakSequence = 0x60;
inline constexpr std::uint8_t kSyndromeClassMask = 0xE0;

/// RDMA extended transport header (WRITE_FIRST, WRITE_ONLY, READ_REQUEST).
struct Reth {
  std::uint64_t address = 0;
  std::uint32_t rkey = 0;
  std::uint32_t length_bytes = 0;
};
/// ACK extended transport header. `msn`: 24 bits.
struct Aeth {
  std::uint8_t syndrome = 0;
  std::uint32_t msn = 0;
};

/// One RoCEv2 packet, headers as fields. `payload` points into the parsed bytes, or to what build() shall copy.
struct Packet {
  IpAddress source;
  IpAddress destination;
  std::uint16_t source_port = 0;
  std::uint8_t traffic_class = 0;  ///< IPv4 TOS or IPv6 traffic class; low two bits are ECN (2 = ECT(0), 3 = CE)
  std::uint8_t hop_limit = 64;
  std::uint16_t ip_id = 0;       ///< IPv4 only
  std::uint32_t flow_label = 0;  ///< IPv6 only, 20 bits
  Opcode opcode = Opcode::kSendOnly;
  bool ack_request = false;
  bool backward_congestion = false;  ///< BECN; set in a CNP
  std::uint16_t pkey = 0xFFFF;
  std::uint32_t destination_qpn = 0;  ///< 24 bits
  std::uint32_t psn = 0;              ///< 24 bits
  std::optional<Reth> reth;
  std::optional<Aeth> aeth;
  std::optional<std::uint32_t> immediate;
  std::span<const std::uint8_t> payload;
  bool dont_fragment = true;  ///< IPv4 only
  bool solicited_event = false;
  bool migration_state = false;  ///< BTH "M"
};

/// Bytes that build() makes of `packet`, from the IP header to the ICRC: pad included, 16 reserved bytes for a CNP.
[[nodiscard]] std::size_t size_of(const Packet& packet);
/// The packet from the IP header to the ICRC, checksums and ICRC filled in (UDP checksum 0 on IPv4, right on IPv6).
[[nodiscard]] std::vector<std::uint8_t> build(const Packet& packet);
/// Reads the bytes from the IP header to the ICRC (trailing link padding is ignored). An Error says what is malformed.
/// Of an opcode that is not in Opcode, all that follows the BTH is payload; of atomics, the AtomicETH is.
/// Does not check the ICRC: see has_valid_icrc().
Result<Packet> parse(std::span<const std::uint8_t> ip);
[[nodiscard]] bool has_valid_icrc(std::span<const std::uint8_t> ip);

[[nodiscard]] bool carries_reth(Opcode opcode);
[[nodiscard]] bool carries_aeth(Opcode opcode);
[[nodiscard]] bool carries_immediate(Opcode opcode);

}  // namespace te::roce
