// SPDX-License-Identifier: Apache-2.0
#include "host-agent/io/bpf_convert.h"

#include <algorithm>
#include <span>

namespace te::agent {
namespace {

IpAddress address_of(std::span<const std::uint8_t> bytes) { return IpAddress::from_bytes(bytes).value(); }

template <std::size_t N>
void copy_address(const IpAddress& address, std::uint8_t (&to)[N]) {
  TE_CHECK(address.bytes().size() == N, "flow key of the other address family");
  std::copy(address.bytes().begin(), address.bytes().end(), to);
}

template <class KernelKey>
KernelKey to_kernel(const FlowKey& key) {
  KernelKey out{};
  out.ifindex = key.ifindex;
  out.destination_qpn = key.destination_qpn;
  copy_address(key.source, out.source);
  copy_address(key.destination, out.destination);
  return out;
}

template <class KernelKey>
FlowKey key_of(const KernelKey& key) {
  return FlowKey{.ifindex = key.ifindex,
                 .source = address_of(key.source),
                 .destination = address_of(key.destination),
                 .destination_qpn = key.destination_qpn};
}

FlowDirection direction_of(std::uint8_t direction) {
  return direction == kTeIngress ? FlowDirection::kIngress : FlowDirection::kEgress;
}

KernelEvent::Kind kind_of(std::uint8_t kind) {
  switch (kind) {
    case kTeNewFlow:
      return KernelEvent::Kind::kNewFlow;
    case kTePortChanged:
      return KernelEvent::Kind::kPortChanged;
    case kTeNak:
      return KernelEvent::Kind::kNak;
    case kTeCnp:
      return KernelEvent::Kind::kCnp;
    default:
      return KernelEvent::Kind::kRareOpcode;
  }
}

}  // namespace

TeFlowKeyV4 to_kernel_v4(const FlowKey& key) { return to_kernel<TeFlowKeyV4>(key); }
TeFlowKeyV6 to_kernel_v6(const FlowKey& key) { return to_kernel<TeFlowKeyV6>(key); }
FlowKey from_kernel(const TeFlowKeyV4& key) { return key_of(key); }
FlowKey from_kernel(const TeFlowKeyV6& key) { return key_of(key); }

FlowSample from_kernel(const FlowKey& key, const TeFlow& flow) {
  return FlowSample{.key = key,
                    .direction = direction_of(flow.direction),
                    .source_port = flow.source_port,
                    .wire_port = flow.wire_port,
                    .steer_port = flow.steer_port,
                    .flow_label = flow.flow_label,
                    .counters = {.packets = flow.packets,
                                 .bytes = flow.bytes,
                                 .payload_bytes = flow.payload_bytes,
                                 .ecn_ce_packets = flow.ecn_ce_packets,
                                 .cnp_packets = flow.cnp_packets,
                                 .ack_packets = flow.ack_packets,
                                 .nak_sequence = flow.nak_sequence,
                                 .nak_rnr = flow.nak_rnr,
                                 .nak_other = flow.nak_other,
                                 .duplicate_packets = flow.duplicate_packets,
                                 .psn_gaps = flow.psn_gaps,
                                 .reordered_packets = flow.reordered_packets,
                                 .steered_packets = flow.steered_packets}};
}

KernelEvent from_kernel(const TeEvent& event) {
  const std::size_t address_bytes = event.family == 6 ? 16 : 4;
  KernelEvent out;
  out.kind = kind_of(event.kind);
  out.key = FlowKey{.ifindex = event.ifindex,
                    .source = address_of(std::span(event.source).first(address_bytes)),
                    .destination = address_of(std::span(event.destination).first(address_bytes)),
                    .destination_qpn = event.destination_qpn};
  out.direction = direction_of(event.direction);
  out.old_port = event.old_port;
  out.new_port = event.new_port;
  out.opcode = event.opcode;
  out.syndrome = event.syndrome;
  out.psn = event.psn;
  return out;
}

}  // namespace te::agent
