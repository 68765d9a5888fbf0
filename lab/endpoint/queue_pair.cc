// SPDX-License-Identifier: Apache-2.0
#include "lab/endpoint/queue_pair.h"

#include <algorithm>
#include <span>
#include <utility>

#include "common/roce/source_port.h"
#include "lab/mix.h"

namespace te::lab {
namespace {

constexpr std::size_t kEthernetHeaderBytes = 14;
constexpr std::uint8_t kEcnMask = 3;
constexpr std::uint8_t kCongestionExperienced = 3;
/// DSCP 26 with ECT(0) for data, the same without ECT for answers, DSCP 48 for CNPs: what NICs are commonly set to.
constexpr std::uint8_t kDataClass = 0x6A;
constexpr std::uint8_t kAnswerClass = 0x68;
constexpr std::uint8_t kCnpClass = 0xC0;
constexpr std::int64_t kCnpIntervalNs = 2'000'000;

std::span<const std::uint8_t> payload_of(std::uint32_t bytes) {
  static const std::vector<std::uint8_t> content = [] {
    std::vector<std::uint8_t> made(4096);
    Mix mix(1);
    for (std::uint8_t& byte : made) byte = static_cast<std::uint8_t>(mix.next());
    return made;
  }();
  return std::span(content).first(bytes);
}

}  // namespace

std::size_t wire_bytes(const roce::Packet& packet) { return roce::size_of(packet) + kEthernetHeaderBytes; }

QueuePair::QueuePair(const EndpointPlan& endpoint, const QpPlan& plan)
    : plan_(plan),
      address_(endpoint.nics[plan.nic].address),
      requester_(MessageShape(endpoint.verb, endpoint.message_bytes, endpoint.path_mtu),
                 Requester::Options{.first_psn = plan.send_psn,
                                    .window_packets = endpoint.window_packets,
                                    .timeout_ns = std::int64_t{endpoint.timeout_ms} * 1'000'000,
                                    .retry_limit = static_cast<int>(endpoint.retries)}),
      responder_(plan.receive_psn, endpoint.ack_every),
      rate_(endpoint.rate_bps) {
  set_flow_label(plan.flow_label);
}

void QueuePair::set_flow_label(std::uint32_t flow_label) {
  plan_.flow_label = flow_label;
  source_port_ = roce::source_port_of_qp(flow_label, plan_.qpn, plan_.remote_qpn);
}

roce::Packet QueuePair::blank(roce::Opcode opcode, std::uint8_t traffic_class) const {
  roce::Packet packet;
  packet.source = address_;
  packet.destination = plan_.remote;
  packet.source_port = source_port_;
  packet.traffic_class = traffic_class;
  packet.flow_label = plan_.flow_label;
  packet.opcode = opcode;
  packet.destination_qpn = plan_.remote_qpn;
  return packet;
}

void QueuePair::note_congestion(std::int64_t now_ns) {
  ++congestion_.ce_marks;
  if (now_ns < next_cnp_ns_) return;
  next_cnp_ns_ = now_ns + kCnpIntervalNs;
  cnp_due_ = true;
}

void QueuePair::on_packet(const roce::Packet& packet, std::int64_t now_ns) {
  if (packet.opcode == roce::Opcode::kCnp) {
    ++congestion_.cnps_received;
    rate_.on_notification(now_ns);
    return;
  }
  if (packet.opcode != roce::Opcode::kAcknowledge) {
    if ((packet.traffic_class & kEcnMask) == kCongestionExperienced) note_congestion(now_ns);
    responder_.on_request(packet);
    return;
  }
  const std::uint8_t syndrome = packet.aeth ? packet.aeth->syndrome : roce::kSyndromeAck;
  if ((syndrome & roce::kSyndromeClassMask) == 0) {
    requester_.on_ack(packet.psn, now_ns);
  } else if (syndrome == roce::kSyndromeNakSequence) {
    requester_.on_sequence_nak(packet.psn, now_ns);
  } else {
    requester_.on_fatal_nak();
  }
}

std::vector<roce::Packet> QueuePair::take_control() {
  std::vector<roce::Packet> packets;
  if (std::exchange(cnp_due_, false)) {
    packets.push_back(blank(roce::Opcode::kCnp, kCnpClass));
    packets.back().backward_congestion = true;
    ++congestion_.cnps_sent;
  }
  for (const Responder::Answer& answer : responder_.take_answers()) {
    packets.push_back(blank(roce::Opcode::kAcknowledge, kAnswerClass));
    packets.back().psn = answer.psn;
    packets.back().aeth = roce::Aeth{answer.syndrome, answer.msn};
  }
  return packets;
}

bool QueuePair::has_data(std::int64_t now_ns) const {
  return plan_.sends && requester_.can_send() && next_data_ns_ <= now_ns;
}

roce::Packet QueuePair::take_data(std::int64_t now_ns) {
  const Segment segment = requester_.send(now_ns);
  roce::Packet packet = blank(segment.opcode, kDataClass);
  packet.psn = segment.psn;
  packet.reth = segment.reth;
  packet.ack_request = segment.ack_request;
  packet.payload = payload_of(segment.payload_bytes);
  const double bits_per_s = rate_.rate_bps(now_ns);
  if (rate_.is_limited()) {
    const auto gap_ns = static_cast<std::int64_t>(static_cast<double>(wire_bytes(packet)) * 8e9 / bits_per_s);
    // A QP that had nothing to send saves up no more than one packet.
    next_data_ns_ = std::max(next_data_ns_ + gap_ns, now_ns);
  }
  return packet;
}

}  // namespace te::lab
