// SPDX-License-Identifier: Apache-2.0
#include "te-controller/engine/flow.h"

#include <array>
#include <cstdio>
#include <span>
#include <string_view>

#include "common/roce/source_port.h"

namespace te {
namespace {

Result<IpAddress> parse_address(const std::string& bytes) {
  return IpAddress::from_bytes({reinterpret_cast<const std::uint8_t*>(bytes.data()), bytes.size()});
}

}  // namespace

std::string FlowId::short_id() const {
  const std::array<std::uint8_t, 3> qpn{static_cast<std::uint8_t>(destination_qpn >> 16U),
                                        static_cast<std::uint8_t>(destination_qpn >> 8U),
                                        static_cast<std::uint8_t>(destination_qpn)};
  const std::uint64_t hash = fnv1a(qpn, fnv1a(destination.bytes(), fnv1a(source.bytes())));
  std::array<char, 9> text{};
  std::snprintf(text.data(), text.size(), "%08x", static_cast<unsigned>(hash ^ hash >> 32U));
  return text.data();
}

Result<FlowId> parse_flow_id(const v1::FlowKey& key) {
  const auto source = parse_address(key.source());
  if (!source) return with_context(source.error(), "source of a flow key");
  const auto destination = parse_address(key.destination());
  if (!destination) return with_context(destination.error(), "destination of a flow key");
  if (source->family() != destination->family()) return Error{"a flow key has addresses of two families"};
  if (key.destination_qpn() > roce::kQpnMask)
    return Error{"a QPN has 24 bits, not " + std::to_string(key.destination_qpn())};
  return FlowId{.source = *source, .destination = *destination, .destination_qpn = key.destination_qpn()};
}

v1::FlowKey make_flow_key(const FlowId& id, std::uint32_t ifindex) {
  v1::FlowKey key;
  key.set_ifindex(ifindex);
  key.set_source(id.source.to_bytes());
  key.set_destination(id.destination.to_bytes());
  key.set_destination_qpn(id.destination_qpn);
  return key;
}

std::string_view to_string(FlowKind kind) {
  switch (kind) {
    case FlowKind::kData:
      return "data";
    case FlowKind::kAck:
      return "ack";
    case FlowKind::kIdle:
      return "idle";
  }
  return "idle";
}

std::uint16_t Flow::wire_port() const {
  const FlowEnd& end = egress ? *egress : *ingress;
  return static_cast<std::uint16_t>(end.report.wire_port);
}

std::uint16_t Flow::source_port() const {
  return egress ? static_cast<std::uint16_t>(egress->report.source_port) : std::uint16_t{0};
}

std::optional<std::uint32_t> Flow::source_qpn() const {
  if (egress && egress->report.local_qpn) return egress->report.local_qpn;
  return ingress ? ingress->report.remote_qpn : std::nullopt;
}

std::optional<FlowId> Flow::reverse() const {
  const auto qpn = source_qpn();
  if (!qpn) return std::nullopt;
  return FlowId{.source = id.destination, .destination = id.source, .destination_qpn = *qpn};
}

RateSample Flow::last_rates() const {
  const FlowEnd& end = measured();
  return end.history.empty() ? RateSample{} : end.history.back();
}

FlowKind Flow::kind(std::int64_t now_ns) const {
  if (last_payload_ns != 0 && now_ns - last_payload_ns <= kRecentNs) return FlowKind::kData;
  if (last_packet_ns != 0 && now_ns - last_packet_ns <= kRecentNs) return FlowKind::kAck;
  return FlowKind::kIdle;
}

}  // namespace te
