// SPDX-License-Identifier: Apache-2.0
#include "host-agent/core/probe_packet.h"

#include <array>

#include "common/roce/packet.h"

namespace te::agent {
namespace {

constexpr auto kUdSendOnly = static_cast<roce::Opcode>(0x64);
// Datagram extended header: Q_Key, reserved byte, source QPN; 0 is nobody's.
constexpr std::array<std::uint8_t, 8> kDatagramHeader{};

}  // namespace

std::vector<std::uint8_t> probe_packet(const Probe& probe) {
  roce::Packet packet;
  packet.source = probe.flow.source;
  packet.destination = probe.flow.destination;
  packet.source_port = probe.port;
  packet.hop_limit = probe.ttl;
  packet.ip_id = probe.token;
  packet.flow_label = probe.flow_label;
  packet.opcode = kUdSendOnly;
  packet.destination_qpn = probe.flow.destination_qpn;
  packet.psn = probe.token;
  packet.payload = kDatagramHeader;
  return roce::build(packet);
}

}  // namespace te::agent
