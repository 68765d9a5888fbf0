// SPDX-License-Identifier: Apache-2.0
#include "te-controller/engine/plan_job.h"

#include <algorithm>
#include <array>
#include <cstdio>
#include <utility>

#include "te-controller/traffic/placement.h"

namespace te {
namespace {

/// A pair's paths in a job's table, added once.
struct PairInJob {
  PairOptions options;
  std::vector<traffic::PathIndex> indices;
};

PairInJob add_pair(traffic::PathTable& table, PairOptions options) {
  PairInJob pair{.options = std::move(options), .indices = {}};
  for (const Path& path : pair.options.paths) pair.indices.push_back(table.add(path.links));
  return pair;
}

traffic::PathIndex index_of(traffic::PathTable& table, const PairInJob& pair, const ComposedPath& path) {
  if (path.status == ComposedPath::Status::kBroken) return table.add(path.links);
  if (!path.reaches()) return traffic::kUnknownPath;
  for (std::size_t i = 0; i < pair.indices.size(); ++i) {
    if (pair.options.paths[i].links == path.links) return pair.indices[i];
  }
  return table.add(path.links);  // beyond the paths that are told apart
}

std::string node_of(const Fabric& fabric, const IpAddress& address) {
  const auto port = fabric.find_address(address);
  return port ? fabric.node(fabric.port(*port).node).name : address.to_string();
}

}  // namespace

std::string label_of(const Fabric& fabric, const FlowId& id) {
  std::array<char, 16> qpn{};
  std::snprintf(qpn.data(), qpn.size(), "0x%x", id.destination_qpn);
  return node_of(fabric, id.source) + " -> " + node_of(fabric, id.destination) + " QP " + qpn.data();
}

PairOptions options_of(Routing& routing, EcmpKnowledge& knowledge, const AddressPair& pair) {
  PairOptions options;
  const auto from = routing.fabric().find_address(pair.source);
  const auto to = routing.fabric().find_address(pair.destination);
  if (!from || !to || routing.fabric().port(*from).node == routing.fabric().port(*to).node) return options;
  options.paths = routing.paths(*from, *to, Prober::kPathLimit).paths;
  options.ports = knowledge.ports_by_path(pair, options.paths);
  return options;
}

std::uint16_t port_for(const PairOptions& options, std::size_t index, const Flow& flow, std::uint16_t present) {
  const PathPorts& known = options.ports[index];
  const auto& ports = known.ports.empty() ? known.maybe : known.ports;
  if (ports.empty()) return 0;
  for (const std::uint16_t wanted : {present, flow.source_port()}) {
    if (std::ranges::binary_search(ports, wanted) && wanted >= kFirstRocePort) return wanted;
  }
  const std::uint64_t spread = fnv1a(flow.id.source.bytes(), flow.id.destination_qpn);
  for (std::size_t i = 0; i < ports.size(); ++i) {
    const std::uint16_t port = ports[(spread + i) % ports.size()];
    if (port >= kFirstRocePort) return port;
  }
  return 0;
}

std::string PlanBuilder::not_by_port(const Fabric& fabric, std::span<const LinkId> way, const AddressPair& pair,
                                     bool must) const {
  const auto destination = fabric.find_address(pair.destination);
  const NodeId node = destination ? parts_.trials->untrusted_on(way, *destination) : kNoId;
  if (node == kNoId) return {};
  const SwitchManner manner = parts_.trials->manner(node);
  const bool open = manner == SwitchManner::kUnknown || manner == SwitchManner::kSilent;
  if (open) return must ? "" : fabric.node(node).name + " has not shown yet that it chooses by the source port";
  return fabric.node(node).name + " does not choose by the source port: " + parts_.trials->evidence(node);
}

std::string PlanBuilder::unsteerable(const Flow& flow) const {
  if (!flow.egress) return "its sender does not report it";
  const FleetNode* sender = parts_.fleet->sender(flow);
  if (sender == nullptr) return "the agent of " + flow.egress->node + " is not connected";
  if (sender->source("tc") != v1::Source::ON) return "steering by tc is not on at " + flow.egress->node;
  return {};
}

std::string PlanBuilder::immovable(const Flow& flow, std::int64_t now_ns) const {
  if (flow.kind(now_ns) != FlowKind::kData) return "it carries no message data; acknowledgements are background";
  std::string why = unsteerable(flow);
  if (why.empty()) why = parts_.overrides->why_pinned(flow.id);
  return why.empty() ? parts_.mover->hold(flow, now_ns) : why;
}

std::shared_ptr<const PlanJob> PlanBuilder::build(std::shared_ptr<const Fabric> fabric, std::int64_t now_ns) const {
  auto job = std::make_shared<PlanJob>();
  job->fabric = std::move(fabric);
  job->input.limits = {.moves_per_cycle = static_cast<std::size_t>(options_.moves_per_cycle),
                       .hysteresis = options_.hysteresis};
  std::map<AddressPair, PairInJob> pairs;
  auto known = pairs.end();  // flows of a pair follow each other
  std::vector<traffic::Candidate> candidates;
  for (const auto& [id, flow] : parts_.fleet->flows()) {
    const FlowKind kind = flow.kind(now_ns);
    if (kind == FlowKind::kIdle) continue;
    if (known == pairs.end() || known->first != id.pair()) known = pairs.find(id.pair());
    if (known == pairs.end()) {
      PairOptions options = options_of(*parts_.routing, *parts_.knowledge, id.pair());
      known = pairs.emplace(id.pair(), add_pair(job->input.paths, std::move(options))).first;
    }
    const PairInJob& pair = known->second;
    const std::uint16_t port = parts_.mover->expected_port(flow, now_ns);
    traffic::PlanFlow planned;
    planned.label = label_of(*job->fabric, id);
    planned.elastic = kind == FlowKind::kData;
    planned.measured_bps = flow.last_rates().rate_bps;
    planned.current_path = index_of(job->input.paths, pair, parts_.knowledge->compose(id.pair(), port));
    planned.current_port = port;
    // A flow on a way that takes none, or by which nothing arrives, is moved whatever it is, and whenever it was last.
    const bool closed = planned.current_path != traffic::kUnknownPath &&
                        !traffic::takes_flows(*job->fabric, job->input.paths.links(planned.current_path));
    planned.must_leave = planned.current_path == traffic::kUnknownPath && parts_.link_watch->lost(id);
    const bool forced = closed || planned.must_leave;
    planned.immovable = forced ? unsteerable(flow) : immovable(flow, now_ns);
    if (planned.immovable.empty() && planned.current_path != traffic::kUnknownPath) {
      planned.immovable = not_by_port(*job->fabric, job->input.paths.links(planned.current_path), id.pair(), closed);
    }
    candidates.clear();
    if ((planned.elastic || forced) && planned.immovable.empty()) {
      for (std::size_t i = 0; i < pair.indices.size(); ++i) {
        const std::uint16_t to = port_for(pair.options, i, flow, port);
        // A port that may lead onto several parallel links is offered once.
        const bool offered = std::ranges::any_of(candidates, [to](const auto& other) { return other.port == to; });
        const bool by_port = not_by_port(*job->fabric, pair.options.paths[i].links, id.pair(), forced).empty();
        if (to != 0 && !offered && by_port) candidates.push_back({.path = pair.indices[i], .port = to});
      }
    }
    job->input.add_flow(std::move(planned), candidates);
    job->flows.push_back(id);
  }
  return job;
}

}  // namespace te
