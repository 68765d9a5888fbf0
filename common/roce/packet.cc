// SPDX-License-Identifier: Apache-2.0
#include "common/roce/packet.h"

#include <algorithm>
#include <array>
#include <string>

#include "common/roce/headers.h"
#include "common/roce/icrc.h"
#include "common/roce/source_port.h"

namespace te::roce {
namespace {

constexpr std::size_t kRethBytes = 16;
constexpr std::size_t kAethBytes = 4;
constexpr std::size_t kImmediateBytes = 4;
constexpr std::size_t kCnpReservedBytes = 16;
constexpr std::uint8_t kProtocolUdp = 17;
constexpr std::uint16_t kDontFragment = 0x4000;
constexpr std::uint16_t kFragmentBits = 0x3FFF;  // more fragments, and the offset

std::size_t ip_header_bytes(const Packet& packet) { return packet.source.is_v4() ? kIpv4Bytes : kIpv6Bytes; }

std::size_t pad_bytes(const Packet& packet) { return (4 - packet.payload.size() % 4) % 4; }

/// Appends integers in network order.
class Writer {
 public:
  explicit Writer(std::size_t size) { bytes_.reserve(size); }
  void u8(std::uint32_t value) { bytes_.push_back(static_cast<std::uint8_t>(value)); }
  void u16(std::uint32_t value) { u8(value >> 8), u8(value); }
  void u24(std::uint32_t value) { u8(value >> 16), u16(value); }
  void u32(std::uint32_t value) { u16(value >> 16), u16(value); }
  void u64(std::uint64_t value) {
    u32(static_cast<std::uint32_t>(value >> 32)), u32(static_cast<std::uint32_t>(value));
  }
  void append(std::span<const std::uint8_t> bytes) { bytes_.insert(bytes_.end(), bytes.begin(), bytes.end()); }
  void zeros(std::size_t count) { bytes_.insert(bytes_.end(), count, 0); }
  std::vector<std::uint8_t>& bytes() { return bytes_; }

 private:
  std::vector<std::uint8_t> bytes_;
};

/// Takes integers in network order off the front; the caller has checked the size.
class Reader {
 public:
  explicit Reader(std::span<const std::uint8_t> bytes) : rest_(bytes) {}
  std::uint8_t u8() { return take(1)[0]; }
  std::uint16_t u16() {
    const auto b = take(2);
    return static_cast<std::uint16_t>(b[0] << 8 | b[1]);
  }
  std::uint32_t u24() { return std::uint32_t{u8()} << 16 | u16(); }
  std::uint32_t u32() { return std::uint32_t{u16()} << 16 | u16(); }
  std::uint64_t u64() { return std::uint64_t{u32()} << 32 | u32(); }
  std::span<const std::uint8_t> take(std::size_t count) {
    TE_CHECK(count <= rest_.size(), "read past the end of a packet");
    const auto head = rest_.first(count);
    rest_ = rest_.subspan(count);
    return head;
  }
  [[nodiscard]] std::span<const std::uint8_t> rest() const { return rest_; }

 private:
  std::span<const std::uint8_t> rest_;
};

std::uint32_t add_ones_complement(std::uint32_t sum, std::span<const std::uint8_t> bytes) {
  for (std::size_t i = 0; i < bytes.size(); i += 2) {
    const std::uint32_t low = i + 1 < bytes.size() ? bytes[i + 1] : 0;
    sum += std::uint32_t{bytes[i]} << 8 | low;
  }
  return sum;
}

std::uint16_t fold_checksum(std::uint32_t sum) {
  while (sum >> 16 != 0) sum = (sum & 0xFFFF) + (sum >> 16);
  return static_cast<std::uint16_t>(~sum);
}

void put_u16(std::vector<std::uint8_t>& bytes, std::size_t at, std::uint16_t value) {
  bytes[at] = static_cast<std::uint8_t>(value >> 8);
  bytes[at + 1] = static_cast<std::uint8_t>(value);
}

void write_ip_header(Writer& out, const Packet& packet, std::size_t total_bytes) {
  if (packet.source.is_v4()) {
    out.u8(0x45);
    out.u8(packet.traffic_class);
    out.u16(static_cast<std::uint32_t>(total_bytes));
    out.u16(packet.ip_id);
    out.u16(packet.dont_fragment ? kDontFragment : 0);
    out.u8(packet.hop_limit);
    out.u8(kProtocolUdp);
    out.u16(0);
  } else {
    out.u32(0x60000000U | std::uint32_t{packet.traffic_class} << 20 | (packet.flow_label & kFlowLabelMask));
    out.u16(static_cast<std::uint32_t>(total_bytes - kIpv6Bytes));
    out.u8(kProtocolUdp);
    out.u8(packet.hop_limit);
  }
  out.append(packet.source.bytes());
  out.append(packet.destination.bytes());
  if (packet.source.is_v4()) put_u16(out.bytes(), 10, fold_checksum(add_ones_complement(0, out.bytes())));
}

void write_transport_headers(Writer& out, const Packet& packet) {
  out.u8(static_cast<std::uint8_t>(packet.opcode));
  out.u8((packet.solicited_event ? 0x80U : 0U) | (packet.migration_state ? 0x40U : 0U) |
         static_cast<std::uint32_t>(pad_bytes(packet) << 4));
  out.u16(packet.pkey);
  out.u8(packet.backward_congestion ? 0x40 : 0);
  out.u24(packet.destination_qpn);
  out.u8(packet.ack_request ? 0x80 : 0);
  out.u24(packet.psn);
  if (carries_reth(packet.opcode)) {
    const Reth reth = packet.reth.value_or(Reth{});
    out.u64(reth.address);
    out.u32(reth.rkey);
    out.u32(reth.length_bytes);
  }
  if (carries_aeth(packet.opcode)) {
    const Aeth aeth = packet.aeth.value_or(Aeth{});
    out.u8(aeth.syndrome);
    out.u24(aeth.msn);
  }
  if (carries_immediate(packet.opcode)) out.u32(packet.immediate.value_or(0));
}

void fill_udp_checksum_v6(std::vector<std::uint8_t>& bytes) {
  const auto udp = std::span(bytes).subspan(kIpv6Bytes);
  std::uint32_t sum = add_ones_complement(0, std::span(bytes).subspan(8, 32));
  sum += static_cast<std::uint32_t>(udp.size()) + kProtocolUdp;
  const std::uint16_t checksum = fold_checksum(add_ones_complement(sum, udp));
  put_u16(bytes, kIpv6Bytes + 6, checksum != 0 ? checksum : 0xFFFF);
}

/// Reads the IP header of `bytes`; what is left of them is UDP up to the end that the header names.
Result<std::span<const std::uint8_t>> parse_ip(std::span<const std::uint8_t> bytes, Packet& packet) {
  const int version = bytes.empty() ? 0 : bytes[0] >> 4;
  if (version != 4 && version != 6) return Error{"not an IPv4 or IPv6 packet"};
  const bool is_v4 = version == 4;
  if (bytes.size() < (is_v4 ? kIpv4Bytes : kIpv6Bytes)) return Error{"IP header cut off"};
  Reader in(bytes);
  std::size_t total_bytes = 0;
  std::uint8_t protocol = 0;
  if (is_v4) {
    if ((in.u8() & 0x0F) != 5) return Error{"IPv4 header with options"};
    packet.traffic_class = in.u8();
    total_bytes = in.u16();
    packet.ip_id = in.u16();
    const std::uint16_t fragment = in.u16();
    if ((fragment & kFragmentBits) != 0) return Error{"IPv4 fragment"};
    packet.dont_fragment = (fragment & kDontFragment) != 0;
    packet.hop_limit = in.u8();
    protocol = in.u8();
    in.u16();
  } else {
    const std::uint32_t first = in.u32();
    packet.traffic_class = static_cast<std::uint8_t>(first >> 20);
    packet.flow_label = first & kFlowLabelMask;
    total_bytes = std::size_t{in.u16()} + kIpv6Bytes;
    protocol = in.u8();
    packet.hop_limit = in.u8();
  }
  if (protocol != kProtocolUdp) return Error{"IP protocol " + std::to_string(protocol) + " is not UDP"};
  const std::size_t address_bytes = is_v4 ? 4 : 16;
  packet.source = IpAddress::from_bytes(in.take(address_bytes)).value();
  packet.destination = IpAddress::from_bytes(in.take(address_bytes)).value();
  const std::size_t header_bytes = is_v4 ? kIpv4Bytes : kIpv6Bytes;
  if (total_bytes > bytes.size()) return Error{"packet cut off: IP length exceeds the bytes that are there"};
  if (total_bytes < header_bytes) return Error{"IP length is shorter than the IP header"};
  return bytes.subspan(header_bytes, total_bytes - header_bytes);
}

std::size_t extension_bytes(Opcode opcode) {
  return (carries_reth(opcode) ? kRethBytes : 0) + (carries_aeth(opcode) ? kAethBytes : 0) +
         (carries_immediate(opcode) ? kImmediateBytes : 0) + (opcode == Opcode::kCnp ? kCnpReservedBytes : 0);
}

void parse_extensions(Reader& in, Packet& packet) {
  if (carries_reth(packet.opcode)) {
    Reth reth;
    reth.address = in.u64();
    reth.rkey = in.u32();
    reth.length_bytes = in.u32();
    packet.reth = reth;
  }
  if (carries_aeth(packet.opcode)) {
    Aeth aeth;
    aeth.syndrome = in.u8();
    aeth.msn = in.u24();
    packet.aeth = aeth;
  }
  if (carries_immediate(packet.opcode)) packet.immediate = in.u32();
  if (packet.opcode == Opcode::kCnp) in.take(kCnpReservedBytes);
}

/// Reads BTH, extension headers and payload from what follows the UDP header.
Result<void> parse_transport(std::span<const std::uint8_t> bytes, Packet& packet) {
  if (bytes.size() < kBthBytes + kIcrcBytes) return Error{"too short for BTH and ICRC"};
  Reader in(bytes.first(bytes.size() - kIcrcBytes));
  packet.opcode = static_cast<Opcode>(in.u8());
  const std::uint8_t flags = in.u8();
  if ((flags & 0x0F) != 0) return Error{"BTH: transport version " + std::to_string(flags & 0x0F) + " is not 0"};
  packet.solicited_event = (flags & 0x80) != 0;
  packet.migration_state = (flags & 0x40) != 0;
  const std::size_t pad = (flags >> 4) & 3;
  packet.pkey = in.u16();
  packet.backward_congestion = (in.u8() & 0x40) != 0;
  packet.destination_qpn = in.u24();
  packet.ack_request = (in.u8() & 0x80) != 0;
  packet.psn = in.u24();
  if (in.rest().size() < extension_bytes(packet.opcode) + pad) return Error{"extension headers or pad cut off"};
  parse_extensions(in, packet);
  packet.payload = in.rest().first(in.rest().size() - pad);
  return {};
}

}  // namespace

bool carries_reth(Opcode opcode) {
  switch (opcode) {
    case Opcode::kWriteFirst:
    case Opcode::kWriteOnly:
    case Opcode::kWriteOnlyImmediate:
    case Opcode::kReadRequest:
      return true;
    default:
      return false;
  }
}

bool carries_aeth(Opcode opcode) {
  switch (opcode) {
    case Opcode::kReadResponseFirst:
    case Opcode::kReadResponseLast:
    case Opcode::kReadResponseOnly:
    case Opcode::kAcknowledge:
    case Opcode::kAtomicAcknowledge:
      return true;
    default:
      return false;
  }
}

bool carries_immediate(Opcode opcode) {
  switch (opcode) {
    case Opcode::kSendLastImmediate:
    case Opcode::kSendOnlyImmediate:
    case Opcode::kWriteLastImmediate:
    case Opcode::kWriteOnlyImmediate:
      return true;
    default:
      return false;
  }
}

std::size_t size_of(const Packet& packet) {
  return ip_header_bytes(packet) + kUdpBytes + kBthBytes + extension_bytes(packet.opcode) + packet.payload.size() +
         pad_bytes(packet) + kIcrcBytes;
}

std::vector<std::uint8_t> build(const Packet& packet) {
  TE_CHECK(packet.source.is_set(), "build: addresses are not set");
  TE_CHECK(packet.source.family() == packet.destination.family(), "build: addresses of two families");
  const std::size_t total_bytes = size_of(packet);
  TE_CHECK(total_bytes <= 0xFFFF, "build: packet exceeds an IP packet");
  Writer out(total_bytes);
  write_ip_header(out, packet, total_bytes);
  out.u16(packet.source_port);
  out.u16(kUdpPort);
  out.u16(static_cast<std::uint32_t>(total_bytes - ip_header_bytes(packet)));
  out.u16(0);
  write_transport_headers(out, packet);
  if (packet.opcode == Opcode::kCnp) out.zeros(kCnpReservedBytes);
  out.append(packet.payload);
  out.zeros(pad_bytes(packet) + kIcrcBytes);
  std::vector<std::uint8_t>& bytes = out.bytes();
  const std::uint32_t crc = icrc(bytes).value();
  for (std::size_t i = 0; i < kIcrcBytes; ++i) {
    bytes[bytes.size() - kIcrcBytes + i] = static_cast<std::uint8_t>(crc >> (8 * i));
  }
  if (packet.source.is_v6()) fill_udp_checksum_v6(bytes);
  return std::move(bytes);
}

Result<Packet> parse(std::span<const std::uint8_t> ip) {
  Packet packet;
  auto udp = parse_ip(ip, packet);
  if (!udp) return std::move(udp).error();
  if (udp->size() < kUdpBytes) return Error{"UDP header cut off"};
  Reader in(*udp);
  packet.source_port = in.u16();
  const std::uint16_t port = in.u16();
  if (port != kUdpPort) return Error{"UDP destination port " + std::to_string(port) + " is not RoCEv2's 4791"};
  const std::size_t udp_bytes = in.u16();
  in.u16();
  if (udp_bytes != udp->size()) return Error{"UDP length does not match the IP length"};
  if (auto transport = parse_transport(in.rest(), packet); !transport) return std::move(transport).error();
  return packet;
}

bool has_valid_icrc(std::span<const std::uint8_t> ip) {
  Packet headers;
  const auto udp = parse_ip(ip, headers);
  if (!udp) return false;
  const std::size_t total_bytes = (headers.source.is_v4() ? kIpv4Bytes : kIpv6Bytes) + udp->size();
  const auto whole = ip.first(total_bytes);
  const auto computed = icrc(whole);
  if (!computed) return false;
  std::uint32_t stored = 0;
  for (std::size_t i = 0; i < kIcrcBytes; ++i) stored |= std::uint32_t{whole[total_bytes - kIcrcBytes + i]} << (8 * i);
  return stored == *computed;
}

}  // namespace te::roce
