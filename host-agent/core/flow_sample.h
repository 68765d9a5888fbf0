// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <compare>
#include <cstdint>

#include "common/base/ip_address.h"

namespace te::agent {

/// One direction of a RoCEv2 flow, as the kernel keys it. `destination_qpn`: 24 bits.
struct FlowKey {
  std::uint32_t ifindex = 0;
  IpAddress source;
  IpAddress destination;
  std::uint32_t destination_qpn = 0;
  auto operator<=>(const FlowKey&) const = default;
};

enum class FlowDirection : std::uint8_t { kEgress, kIngress };

/// Totals since the kernel first saw the flow. Sizes in bytes of whole IP packets; `payload_bytes` is message data
/// only.
struct FlowCounters {
  std::uint64_t packets = 0;
  std::uint64_t bytes = 0;
  std::uint64_t payload_bytes = 0;
  std::uint64_t ecn_ce_packets = 0;
  std::uint64_t cnp_packets = 0;
  std::uint64_t ack_packets = 0;
  std::uint64_t nak_sequence = 0;
  std::uint64_t nak_rnr = 0;
  std::uint64_t nak_other = 0;
  std::uint64_t duplicate_packets = 0;
  std::uint64_t psn_gaps = 0;
  std::uint64_t reordered_packets = 0;
  std::uint64_t steered_packets = 0;
  bool operator==(const FlowCounters&) const = default;
};

/// What the kernel holds of one flow. Ports in host order; `source_port` as sent by the QP, `wire_port` after any
/// rewrite; `steer_port` is the port it is steered to, 0: not steered.
struct FlowSample {
  FlowKey key;
  FlowDirection direction = FlowDirection::kEgress;
  std::uint16_t source_port = 0;
  std::uint16_t wire_port = 0;
  std::uint16_t steer_port = 0;
  std::uint32_t flow_label = 0;  ///< IPv6, last seen
  FlowCounters counters;
};

/// A rare thing the kernel saw, from the ring buffer.
struct KernelEvent {
  enum class Kind : std::uint8_t { kNewFlow, kPortChanged, kNak, kCnp, kRareOpcode };
  Kind kind = Kind::kNewFlow;
  FlowKey key;
  FlowDirection direction = FlowDirection::kEgress;
  std::uint16_t old_port = 0;
  std::uint16_t new_port = 0;
  std::uint8_t opcode = 0;
  std::uint8_t syndrome = 0;
  std::uint32_t psn = 0;
};

}  // namespace te::agent
