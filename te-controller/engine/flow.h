// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <compare>
#include <cstdint>
#include <optional>
#include <string>

#include "common/base/ip_address.h"
#include "common/base/result.h"
#include "te-controller/engine/rate_history.h"
#include "te/v1/agent.pb.h"
#include "topology/ecmp_knowledge.h"

namespace te {

/// One direction of a RoCEv2 flow, the same for both hosts that report it. `destination_qpn`: 24 bits.
struct FlowId {
  IpAddress source;
  IpAddress destination;
  std::uint32_t destination_qpn = 0;
  auto operator<=>(const FlowId&) const = default;

  [[nodiscard]] AddressPair pair() const { return {.source = source, .destination = destination, .vlan = 0}; }
  /// 8 hexadecimal digits of FNV-1a, what people call the flow.
  [[nodiscard]] std::string short_id() const;
};

/// Flow as one of its hosts sees it; `egress`: the sender.
struct FlowEndId {
  FlowId id;
  bool egress = false;
  bool operator==(const FlowEndId&) const = default;
};

/// Reads the key of a report; an Error for addresses of a wrong length or of two families, or a QPN beyond 24 bits.
Result<FlowId> parse_flow_id(const v1::FlowKey& key);
/// The key as an agent's kernel has it.
[[nodiscard]] v1::FlowKey make_flow_key(const FlowId& id, std::uint32_t ifindex);

/// What a v1::FlowReport says, without what names the flow, rates, and what nobody reads. Owns no memory: there is one
/// for each flow and host.
struct FlowRecord {
  std::uint64_t packets = 0;
  std::uint64_t ecn_ce_packets = 0;
  std::uint64_t nak_sequence = 0;
  std::uint64_t nak_rnr = 0;
  std::uint64_t nak_other = 0;
  std::uint64_t duplicate_packets = 0;
  std::uint64_t psn_gaps = 0;
  std::uint64_t reordered_packets = 0;
  std::uint64_t steered_packets = 0;
  std::optional<std::uint32_t> local_qpn;
  std::optional<std::uint32_t> remote_qpn;
  std::uint32_t flow_label = 0;
  v1::PortProvenance provenance = v1::PORT_UNKNOWN;
  std::uint32_t ifindex = 0;
  std::uint32_t source_port = 0;
  std::uint32_t wire_port = 0;
  bool operator==(const FlowRecord&) const = default;
};

struct FleetNode;

/// What one of the two hosts says of a flow. What is asked for most often comes last, beside std::optional's own flag:
/// all flows are walked through several times a second, and each line of memory counts.
struct FlowEnd {
  RateHistory history;
  std::string node;
  double ecn_ce_share = 0;           ///< of the packets of the last interval that had any
  std::int64_t reported_ns = 0;      ///< when `report` came
  std::uint64_t update = 0;          ///< the Fleet's number of the update that brought it
  const FleetNode* owner = nullptr;  ///< `node`
  FlowRecord report;                 ///< the last one
};

enum class FlowKind : std::uint8_t { kData, kAck, kIdle };
/// "data", "ack" or "idle".
[[nodiscard]] std::string_view to_string(FlowKind kind);

/// A flow as its sender (egress) and its receiver (ingress) see it; at least one of them is there.
struct Flow {
  FlowId id;
  std::int64_t first_seen_ns = 0;
  std::int64_t last_payload_ns = 0;  ///< message data seen; 0: never
  std::int64_t last_packet_ns = 0;   ///< any packet seen; 0: never
  std::optional<FlowEnd> egress;
  std::optional<FlowEnd> ingress;

  /// On the wire; 0: unknown.
  [[nodiscard]] std::uint16_t wire_port() const;
  /// As the QP sends it, before any rewrite; 0: unknown (only the receiver reports).
  [[nodiscard]] std::uint16_t source_port() const;
  /// The sender's QP; absent: unknown.
  [[nodiscard]] std::optional<std::uint32_t> source_qpn() const;
  /// The other direction of the QP pair; absent: unknown.
  [[nodiscard]] std::optional<FlowId> reverse() const;
  /// The end that measures goodput best: the receiver where it reports.
  [[nodiscard]] const FlowEnd& measured() const { return ingress ? *ingress : *egress; }
  /// Rates of the last interval.
  [[nodiscard]] RateSample last_rates() const;
  /// Data: carried message data within kRecentNs. Such flows are elastic.
  [[nodiscard]] FlowKind kind(std::int64_t now_ns) const;

  static constexpr std::int64_t kRecentNs = 10'000'000'000;
};

}  // namespace te

template <>
struct std::hash<te::FlowEndId> {
  std::size_t operator()(const te::FlowEndId& end) const noexcept {
    const std::size_t pair = std::hash<te::AddressPair>()(end.id.pair());
    const std::uint64_t number = std::uint64_t{end.id.destination_qpn} << 1U | (end.egress ? 1U : 0U);
    return static_cast<std::size_t>((pair ^ number) * 0x9E3779B97F4A7C15ULL);
  }
};
