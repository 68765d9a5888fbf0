// SPDX-License-Identifier: Apache-2.0
#include "host-agent/core/messages.h"

#include <utility>

#include "common/roce/source_port.h"
#include "host-agent/core/pairing.h"

namespace te::agent {
namespace {

Result<IpAddress> address_from(const std::string& bytes) {
  return IpAddress::from_bytes({reinterpret_cast<const std::uint8_t*>(bytes.data()), bytes.size()});
}

void set_counters(const FlowCounters& totals, v1::FlowReport& message) {
  message.set_packets(totals.packets);
  message.set_bytes(totals.bytes);
  message.set_payload_bytes(totals.payload_bytes);
  message.set_ecn_ce_packets(totals.ecn_ce_packets);
  message.set_cnp_packets(totals.cnp_packets);
  message.set_ack_packets(totals.ack_packets);
  message.set_nak_sequence(totals.nak_sequence);
  message.set_nak_rnr(totals.nak_rnr);
  message.set_nak_other(totals.nak_other);
  message.set_duplicate_packets(totals.duplicate_packets);
  message.set_psn_gaps(totals.psn_gaps);
  message.set_reordered_packets(totals.reordered_packets);
  message.set_steered_packets(totals.steered_packets);
}

}  // namespace

v1::FlowKey to_message(const FlowKey& key) {
  v1::FlowKey message;
  message.set_ifindex(key.ifindex);
  message.set_source(key.source.to_bytes());
  message.set_destination(key.destination.to_bytes());
  message.set_destination_qpn(key.destination_qpn);
  return message;
}

v1::FlowReport to_message(const FlowRecord& flow) {
  v1::FlowReport message;
  *message.mutable_key() = to_message(flow.key);
  message.set_direction(flow.direction == FlowDirection::kEgress ? v1::EGRESS : v1::INGRESS);
  message.set_source_port(flow.source_port);
  message.set_wire_port(flow.wire_port);
  message.set_provenance(provenance_of(flow));
  message.set_flow_label(flow.flow_label);
  if (flow.local_qpn) message.set_local_qpn(*flow.local_qpn);
  if (flow.remote_qpn) message.set_remote_qpn(*flow.remote_qpn);
  set_counters(flow.totals, message);
  message.set_rate_bps(flow.rate_bps);
  message.set_payload_bps(flow.payload_bps);
  message.set_ended(flow.ended);
  return message;
}

v1::SteeringEntry to_message(const Steering& steering) {
  v1::SteeringEntry message;
  *message.mutable_key() = to_message(steering.key);
  message.set_port(steering.port);
  return message;
}

v1::ProbeResult to_message(const ProbeReport& report) {
  v1::ProbeResult message;
  message.set_id(report.id);
  message.set_sent(report.sent);
  message.set_lost(report.lost);
  message.set_done(report.done);
  message.set_error(report.error);
  for (const ProbeOutcome& outcome : report.outcomes) {
    v1::ProbeAnswer& answer = *message.add_answers();
    answer.set_port(outcome.port);
    answer.set_ttl(outcome.ttl);
    answer.set_responder(outcome.responder.to_bytes());
    answer.set_attempts(outcome.attempts);
    answer.set_rtt_us(outcome.rtt_us);
    answer.set_unreachable(outcome.unreachable);
  }
  return message;
}

v1::LinkReport to_message(const netlink::LinkMessage& link) {
  v1::LinkReport message;
  message.set_interface(link.name);
  message.set_ifindex(link.ifindex);
  message.set_up(link.up);
  message.set_carrier(link.carrier);
  message.set_carrier_changes(link.carrier_changes);
  message.set_received_packets(link.counters.received_packets);
  message.set_sent_packets(link.counters.sent_packets);
  message.set_received_bytes(link.counters.received_bytes);
  message.set_sent_bytes(link.counters.sent_bytes);
  message.set_received_errors(link.counters.received_errors);
  message.set_sent_errors(link.counters.sent_errors);
  message.set_received_drops(link.counters.received_drops);
  message.set_sent_drops(link.counters.sent_drops);
  return message;
}

v1::SteeringReport steering_report(const SteeringReconciler& reconciler) {
  v1::SteeringReport message;
  message.set_revision(reconciler.revision());
  for (const Steering& steering : reconciler.programmed()) *message.add_programmed() = to_message(steering);
  for (const SteeringProblem& problem : reconciler.problems()) {
    v1::SteeringFailure& failure = *message.add_failures();
    *failure.mutable_entry() = to_message(problem.steering);
    failure.set_reason(problem.reason);
  }
  return message;
}

v1::ProbeResult refused_probe(const v1::ProbeRequest& request, const std::string& reason) {
  v1::ProbeResult message;
  message.set_id(request.id());
  message.set_done(true);
  message.set_error(reason);
  return message;
}

v1::SteeringReport refused_steering(const v1::SteeringSet& set, const std::string& reason) {
  v1::SteeringReport message;
  message.set_revision(set.revision());
  for (const v1::SteeringEntry& entry : set.entries()) {
    v1::SteeringFailure& failure = *message.add_failures();
    *failure.mutable_entry() = entry;
    failure.set_reason(reason);
  }
  return message;
}

v1::SourceUpdate source_update(const SourceBoard& board) {
  v1::SourceUpdate message;
  for (const v1::Source& source : board.all()) *message.add_sources() = source;
  return message;
}

Result<FlowKey> flow_key_from(const v1::FlowKey& message) {
  const auto source = address_from(message.source());
  if (!source) return with_context(source.error(), "source of a flow");
  const auto destination = address_from(message.destination());
  if (!destination) return with_context(destination.error(), "destination of a flow");
  if (source->family() != destination->family()) return Error{"a flow's addresses must be of one family"};
  if (message.destination_qpn() > roce::kQpnMask) {
    return Error{"destination QPN " + std::to_string(message.destination_qpn()) + " has more than 24 bits"};
  }
  return FlowKey{message.ifindex(), *source, *destination, message.destination_qpn()};
}

Result<ProbeOrder> probe_order_from(const v1::ProbeRequest& message) {
  constexpr std::int64_t kNanosecondsPerMillisecond = 1'000'000;
  const auto flow = flow_key_from(message.flow());
  if (!flow) return flow.error();
  ProbeOrder order;
  order.id = message.id();
  order.flow = *flow;
  order.flow_label = message.flow_label() & roce::kFlowLabelMask;
  for (const std::uint32_t port : message.ports()) {
    if (port == 0 || port > 0xFFFF) return Error{std::to_string(port) + " is no UDP port"};
    order.ports.push_back(static_cast<std::uint16_t>(port));
  }
  for (const std::uint32_t ttl : message.ttls()) {
    if (ttl == 0 || ttl > 0xFF) return Error{std::to_string(ttl) + " is no TTL"};
    order.ttls.push_back(static_cast<std::uint8_t>(ttl));
  }
  if (message.probes_per_s() != 0) order.probes_per_s = message.probes_per_s();
  if (message.attempts() != 0) order.attempts = message.attempts();
  if (message.timeout_ms() != 0) order.timeout_ns = message.timeout_ms() * kNanosecondsPerMillisecond;
  return order;
}

std::vector<Steering> steering_from(const v1::SteeringSet& message, std::vector<std::string>& problems) {
  std::vector<Steering> entries;
  for (const v1::SteeringEntry& entry : message.entries()) {
    const auto key = flow_key_from(entry.key());
    if (!key) {
      problems.push_back(key.error().message);
    } else if (entry.port() > 0xFFFF) {
      problems.push_back("port " + std::to_string(entry.port()) + " is not in 49152..65535");
    } else {
      entries.push_back({*key, static_cast<std::uint16_t>(entry.port())});
    }
  }
  return entries;
}

}  // namespace te::agent
