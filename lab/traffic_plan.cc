// SPDX-License-Identifier: Apache-2.0
#include "lab/traffic_plan.h"

#include <fmt/format.h>

#include <array>
#include <numeric>
#include <set>

#include "common/roce/source_port.h"
#include "lab/mix.h"

namespace te::lab {
namespace {

using Connections = std::vector<std::pair<std::size_t, std::size_t>>;

/// Number 1 is the management QP; real devices hand out numbers from about here on.
constexpr std::uint32_t kFirstQpn = 0x40;

Connections ring(std::size_t hosts, std::uint32_t /*seed*/) {
  Connections made;
  for (std::size_t host = 0; host < hosts; ++host) made.emplace_back(host, (host + 1) % hosts);
  return made;
}

Connections pairs(std::size_t hosts, std::uint32_t /*seed*/) {
  Connections made;
  for (std::size_t host = 0; host + 1 < hosts; host += 2) made.emplace_back(host, host + 1);
  return made;
}

/// Everyone sends to one other and hears from one other, by lot.
Connections permutation(std::size_t hosts, std::uint32_t seed) {
  Mix mix(seed);
  std::vector<std::size_t> order(hosts);
  std::iota(order.begin(), order.end(), std::size_t{0});
  // Sattolo's shuffle makes one cycle, so that nobody sends to itself.
  for (std::size_t last = hosts - 1; last > 0; --last) std::swap(order[last], order[mix.below(last)]);
  Connections made;
  for (std::size_t host = 0; host < hosts; ++host) made.emplace_back(host, order[host]);
  return made;
}

Connections incast(std::size_t hosts, std::uint32_t /*seed*/) {
  Connections made;
  for (std::size_t host = 1; host < hosts; ++host) made.emplace_back(host, 0);
  return made;
}

Connections all_to_all(std::size_t hosts, std::uint32_t /*seed*/) {
  Connections made;
  for (std::size_t from = 0; from < hosts; ++from) {
    for (std::size_t to = 0; to < hosts; ++to) {
      if (from != to) made.emplace_back(from, to);
    }
  }
  return made;
}

struct Pattern {
  const char* name;
  Connections (*make)(std::size_t hosts, std::uint32_t seed);
};

constexpr std::array kPatterns{Pattern{"ring", ring}, Pattern{"pairs", pairs}, Pattern{"permutation", permutation},
                               Pattern{"incast", incast}, Pattern{"all-to-all", all_to_all}};

Result<std::size_t> host_called(const Fabric& fabric, const YamlReader& entry, const char* key) {
  auto name = entry.string(key);
  if (!name) return std::move(name).error();
  const std::size_t index = find_node(fabric, *name);
  if (index >= static_cast<std::size_t>(fabric.spec.hosts)) {
    return entry.error("'" + *name + "' is no host of this lab");
  }
  return index;
}

}  // namespace

std::vector<std::string> pattern_names() {
  std::vector<std::string> names;
  names.reserve(kPatterns.size());
  for (const Pattern& pattern : kPatterns) names.emplace_back(pattern.name);
  return names;
}

Result<Connections> connections_of(const std::string& pattern, std::size_t hosts, std::uint32_t seed) {
  if (hosts < 2) return Error{"traffic needs at least two hosts"};
  for (const Pattern& known : kPatterns) {
    if (pattern == known.name) return known.make(hosts, seed);
  }
  return Error{"there is no traffic pattern '" + pattern + "'"};
}

Result<std::vector<FlowPlan>> plan_flows(const Fabric& fabric, const TrafficOptions& options) {
  const auto hosts = static_cast<std::size_t>(fabric.spec.hosts);
  auto connections = connections_of(options.pattern, hosts, fabric.spec.seed);
  if (!connections) return std::move(connections).error();
  Mix mix(std::uint64_t{fabric.spec.seed} << 32 | 0x51);
  std::vector<std::set<std::uint32_t>> taken(hosts);
  const auto qpn_for = [&](std::size_t host) {
    while (true) {
      const auto qpn = static_cast<std::uint32_t>(kFirstQpn + mix.below(roce::kQpnMask - kFirstQpn));
      if (taken[host].insert(qpn).second) return qpn;
    }
  };
  std::vector<FlowPlan> flows;
  for (const auto& [source, destination] : *connections) {
    for (int number = 0; number < fabric.spec.nics * options.qps; ++number) {
      FlowPlan flow;
      flow.source = source;
      flow.destination = destination;
      flow.nic = static_cast<std::size_t>(number / options.qps);
      flow.qp = number % options.qps;
      flow.source_qpn = qpn_for(source);
      flow.destination_qpn = qpn_for(destination);
      flow.source_psn = static_cast<std::uint32_t>(mix.next()) & roce::kPsnMask;
      flow.destination_psn = static_cast<std::uint32_t>(mix.next()) & roce::kPsnMask;
      flows.push_back(flow);
    }
  }
  return flows;
}

Result<void> set_flow_labels(const Fabric& fabric, const YamlReader& root, std::vector<FlowPlan>& flows) {
  auto entries = root.list("flows");
  if (!entries) return std::move(entries).error();
  for (const YamlReader& entry : *entries) {
    const auto source = host_called(fabric, entry, "source");
    if (!source) return source.error();
    const auto destination = host_called(fabric, entry, "destination");
    if (!destination) return destination.error();
    const auto qp = entry.integer_or("qp", 0, 0, 1 << 20);
    if (!qp) return qp.error();
    const auto nic = entry.integer_or("nic", 0, 0, fabric.spec.nics - 1);
    if (!nic) return nic.error();
    const auto label = entry.integer_or("flow_label", 0, 0, roce::kFlowLabelMask);
    if (!label) return label.error();
    const auto answer_label = entry.integer_or("answer_flow_label", 0, 0, roce::kFlowLabelMask);
    if (!answer_label) return answer_label.error();
    bool found = false;
    for (FlowPlan& flow : flows) {
      if (flow.source != *source || flow.destination != *destination || flow.qp != *qp) continue;
      if (flow.nic != static_cast<std::size_t>(*nic)) continue;
      flow.flow_label = static_cast<std::uint32_t>(*label);
      flow.answer_flow_label = static_cast<std::uint32_t>(*answer_label);
      found = true;
    }
    if (!found) return entry.error("the traffic has no such flow");
  }
  return {};
}

std::vector<EndpointPlan> plan_endpoints(const Fabric& fabric, const TrafficOptions& options,
                                         const std::vector<FlowPlan>& flows, const std::string& state_directory) {
  std::vector<EndpointPlan> endpoints;
  for (std::size_t host = 0; host < static_cast<std::size_t>(fabric.spec.hosts); ++host) {
    EndpointPlan plan;
    plan.host = fabric.nodes[host].name;
    for (std::size_t nic = 0; nic < static_cast<std::size_t>(fabric.spec.nics); ++nic) {
      plan.nics.push_back({fabric.links[host_link(fabric, host, nic)].a.ip_name, host_address(fabric, host, nic)});
    }
    plan.rate_bps = fabric.spec.rate_bps;
    plan.path_mtu = static_cast<std::uint32_t>(path_mtu_of(fabric.spec.mtu));
    plan.verb = options.verb;
    plan.message_bytes = options.message_bytes;
    plan.window_packets = options.window_packets;
    plan.ack_every = options.ack_every;
    plan.timeout_ms = options.timeout_ms;
    plan.retries = options.retries;
    plan.qp_table_path = state_directory + "/qp/" + plan.host + ".json";
    plan.stats_path = state_directory + "/stats/" + plan.host + ".jsonl";
    for (const FlowPlan& flow : flows) {
      const IpAddress& source = host_address(fabric, flow.source, flow.nic);
      const IpAddress& destination = host_address(fabric, flow.destination, flow.nic);
      if (flow.source == host) {
        plan.qps.push_back({flow.nic, flow.source_qpn, flow.destination_qpn, fabric.nodes[flow.destination].name,
                            destination, flow.source_psn, flow.destination_psn, flow.flow_label, true});
      }
      if (flow.destination == host) {
        plan.qps.push_back({flow.nic, flow.destination_qpn, flow.source_qpn, fabric.nodes[flow.source].name, source,
                            flow.destination_psn, flow.source_psn, flow.answer_flow_label, false});
      }
    }
    endpoints.push_back(std::move(plan));
  }
  return endpoints;
}

std::string flows_json(const Fabric& fabric, const std::vector<FlowPlan>& flows) {
  std::string text = "[";
  const char* comma = "\n";
  for (const FlowPlan& flow : flows) {
    text += fmt::format(
        R"({}{{"source": "{}", "destination": "{}", "nic": {}, "qp": {}, "source_qpn": {}, "destination_qpn": {}, "source_port": {}, )"
        R"("answer_source_port": {}}})",
        comma, fabric.nodes[flow.source].name, fabric.nodes[flow.destination].name, flow.nic, flow.qp, flow.source_qpn,
        flow.destination_qpn, roce::source_port_of_qp(flow.flow_label, flow.source_qpn, flow.destination_qpn),
        roce::source_port_of_qp(flow.answer_flow_label, flow.destination_qpn, flow.source_qpn));
    comma = ",\n";
  }
  return text + "]\n";
}

}  // namespace te::lab
