// SPDX-License-Identifier: Apache-2.0
#include "tests/bench/ingest/traffic.h"

#include <array>

#include "common/base/ip_address.h"
#include "topology/builder.h"
#include "topology/ecmp_knowledge.h"

namespace te {
namespace {

constexpr std::uint32_t kRequesterQpns = 0x1000;
constexpr std::uint32_t kResponderQpns = 0x2000;
constexpr double kDataBps = 8e9;
constexpr double kAckBps = 16e6;
constexpr std::uint32_t kDataPacketBytes = 4172;
constexpr std::uint32_t kDataPayloadBytes = 4096;
constexpr std::uint32_t kAckPacketBytes = 48;
constexpr std::uint32_t kJitterSteps = 100;

/// A direction of a QP pair.
struct Direction {
  IpAddress source;
  IpAddress destination;
  std::uint32_t source_qpn = 0;
  std::uint32_t destination_qpn = 0;
  bool data = false;
};

IpAddress address_of(std::uint32_t host) {
  return IpAddress::v4({10, static_cast<std::uint8_t>(host / BenchTraffic::kHostsPerLeaf + 1),
                        static_cast<std::uint8_t>(host % BenchTraffic::kHostsPerLeaf + 1), 2});
}

std::uint64_t hash_of(const IpAddress& source, const IpAddress& destination, std::uint32_t number) {
  const std::array<std::uint8_t, 3> bytes{static_cast<std::uint8_t>(number >> 16U),
                                          static_cast<std::uint8_t>(number >> 8U), static_cast<std::uint8_t>(number)};
  const std::uint64_t hash = fnv1a(bytes, fnv1a(destination.bytes(), fnv1a(source.bytes())));
  return hash ^ hash >> 32U;
}

void add(v1::FlowUpdate& update, const Direction& direction, bool egress) {
  v1::FlowReport& report = *update.add_flows();
  report.mutable_key()->set_ifindex(2);
  report.mutable_key()->set_source(direction.source.to_bytes());
  report.mutable_key()->set_destination(direction.destination.to_bytes());
  report.mutable_key()->set_destination_qpn(direction.destination_qpn);
  report.set_direction(egress ? v1::EGRESS : v1::INGRESS);
  const auto port = static_cast<std::uint32_t>(
      kFirstRocePort + hash_of(direction.source, direction.destination, direction.destination_qpn) %
                           (kLastRocePort - kFirstRocePort + 1U));
  report.set_source_port(egress ? port : 0);
  report.set_wire_port(port);
  report.set_provenance(v1::PORT_SEEN);
  report.set_local_qpn(egress ? direction.source_qpn : direction.destination_qpn);
  report.set_remote_qpn(egress ? direction.destination_qpn : direction.source_qpn);
  report.set_packets(1'000'000);
  const std::uint64_t size = direction.data ? kDataPacketBytes : kAckPacketBytes;
  report.set_bytes(report.packets() * size);
  report.set_payload_bytes(direction.data ? report.packets() * kDataPayloadBytes : 0);
  report.set_ack_packets(direction.data ? 0 : report.packets());
  report.set_rate_bps(direction.data ? kDataBps : kAckBps);
  report.set_payload_bps(direction.data ? kDataBps * kDataPayloadBytes / kDataPacketBytes : 0);
}

std::string end_of(const Fabric& fabric, PortId id) {
  const Port& port = fabric.port(id);
  return "{node: " + fabric.node(port.node).name + ", port: " + port.name + ", addresses: [" +
         port.addresses.front().to_string() + "]}";
}

}  // namespace

BenchTraffic::BenchTraffic(std::uint32_t hosts, std::uint32_t flows_per_host)
    : hosts_(hosts),
      qp_pairs_(flows_per_host / 4),
      fabric_(build_clos({.leaves = hosts / kHostsPerLeaf,
                          .hosts_per_leaf = kHostsPerLeaf,
                          .spines = kSpines,
                          .host_bps = 400e9,
                          .uplink_bps = 1600e9})) {
  TE_CHECK(hosts % kHostsPerLeaf == 0 && flows_per_host % 4 == 0, "hosts or flows do not divide evenly");
}

std::string BenchTraffic::topology_yaml() const {
  std::string text = "version: 1\nnodes:\n";
  for (const Node& node : fabric_.nodes())
    text += "  - {name: " + node.name + ", kind: " + std::string(to_string(node.kind)) + "}\n";
  text += "links:\n";
  for (LinkId id = 0; id < fabric_.links().size(); ++id) {
    const Link& link = fabric_.link(id);
    if (link.reverse < id) continue;  // the other direction of a cable that is there already
    text += "  - {a: " + end_of(fabric_, link.from_port) + ", b: " + end_of(fabric_, link.to_port) +
            ", capacity: " + std::to_string(static_cast<std::uint64_t>(link.capacity_bps / 1e9)) + "gbit}\n";
  }
  return text;
}

v1::AgentMessage BenchTraffic::hello(std::uint32_t host) const {
  v1::AgentMessage message;
  v1::Hello& hello = *message.mutable_hello();
  hello.set_protocol_version(1);
  hello.set_node(name(host));
  hello.set_software_version("bench");
  hello.set_role("host");
  hello.set_instance(host + 1);
  for (const char* source : {"tc", "probe"}) {
    v1::Source& one = *hello.add_sources();
    one.set_name(source);
    one.set_state(v1::Source::ON);
  }
  v1::NicPort& port = *hello.add_ports();
  port.set_interface("eth0");
  port.set_ifindex(2);
  port.add_addresses(address_of(host).to_bytes());
  port.set_mtu(9000);
  port.set_up(true);
  return message;
}

v1::AgentMessage BenchTraffic::first_report(std::uint32_t host) const {
  const std::uint32_t next = (host + kHostsPerLeaf) % hosts_;
  const std::uint32_t before = (host + hosts_ - kHostsPerLeaf) % hosts_;
  v1::AgentMessage message;
  v1::FlowUpdate& update = *message.mutable_flows();
  update.set_complete(true);
  for (std::uint32_t qp = 0; qp < qp_pairs_; ++qp) {
    const std::uint32_t requester = kRequesterQpns + qp;
    const std::uint32_t responder = kResponderQpns + qp;
    add(update, {address_of(host), address_of(next), requester, responder, true}, true);
    add(update, {address_of(next), address_of(host), responder, requester, false}, false);
    add(update, {address_of(before), address_of(host), requester, responder, true}, false);
    add(update, {address_of(host), address_of(before), responder, requester, false}, true);
  }
  return message;
}

v1::AgentMessage BenchTraffic::answer(const v1::ProbeRequest& request) const {
  const auto bytes = [](const std::string& text) {
    return std::span(reinterpret_cast<const std::uint8_t*>(text.data()), text.size());
  };
  const auto source = IpAddress::from_bytes(bytes(request.flow().source()));
  const auto destination = IpAddress::from_bytes(bytes(request.flow().destination()));
  v1::AgentMessage message;
  v1::ProbeResult& result = *message.mutable_probe_result();
  result.set_id(request.id());
  result.set_done(true);
  if (!source || !destination || source->is_v6() || destination->is_v6()) return message;
  const std::uint8_t first_leaf = source->bytes()[1];
  const std::uint8_t last_leaf = destination->bytes()[1];
  for (const std::uint32_t port : request.ports()) {
    const auto spine = static_cast<std::uint8_t>(hash_of(*source, *destination, port) % kSpines + 1);
    for (const std::uint32_t ttl : request.ttls()) {
      v1::ProbeAnswer& one = *result.add_answers();
      one.set_port(port);
      one.set_ttl(ttl);
      one.set_attempts(1);
      one.set_rtt_us(20);
      IpAddress responder = IpAddress::v4({172, 16, last_leaf, spine});
      if (ttl == 1) responder = IpAddress::v4({10, first_leaf, source->bytes()[2], 1});
      if (ttl == 2) responder = IpAddress::v4({172, 20, first_leaf, spine});
      one.set_responder(responder.to_bytes());
    }
  }
  result.set_sent(static_cast<std::uint32_t>(result.answers_size()));
  return message;
}

void advance(v1::FlowUpdate& update, std::uint32_t round) {
  update.set_complete(false);
  std::uint32_t number = round;
  for (v1::FlowReport& report : *update.mutable_flows()) {
    const bool data = report.payload_bytes() > 0;
    const double share = 1 + static_cast<double>(number++ * 37 % kJitterSteps) / (10 * kJitterSteps);
    const double rate_bps = share * (data ? kDataBps : kAckBps);
    const std::uint64_t size = data ? kDataPacketBytes : kAckPacketBytes;
    const auto packets = static_cast<std::uint64_t>(rate_bps / 8e3 * update.interval_ms() / static_cast<double>(size));
    report.set_packets(report.packets() + packets);
    report.set_bytes(report.bytes() + packets * size);
    report.set_rate_bps(rate_bps);
    if (data) {
      report.set_payload_bytes(report.payload_bytes() + packets * kDataPayloadBytes);
      report.set_payload_bps(rate_bps * kDataPayloadBytes / kDataPacketBytes);
    } else {
      report.set_ack_packets(report.ack_packets() + packets);
    }
  }
}

}  // namespace te
