// SPDX-License-Identifier: Apache-2.0
#include "te-controller/engine/plan_job.h"

#include <algorithm>
#include <array>
#include <charconv>
#include <utility>

#include "te-controller/traffic/placement.h"

namespace te {
namespace {

std::string node_of(const Fabric& fabric, const IpAddress& address) {
  const auto port = fabric.find_address(address);
  return port ? fabric.node(fabric.port(*port).node).name : address.to_string();
}

std::string label_of_pair(const Fabric& fabric, const AddressPair& pair) {
  return node_of(fabric, pair.source) + " -> " + node_of(fabric, pair.destination) + " QP 0x";
}

std::string hexadecimal(std::uint32_t number) {
  std::array<char, 8> digits{};
  return {digits.data(), std::to_chars(digits.data(), digits.data() + digits.size(), number, 16).ptr};
}

bool same_links(const std::vector<LinkId>& a, const std::vector<LinkId>& b) {
  return a.size() == b.size() && std::equal(a.begin(), a.end(), b.begin());
}

}  // namespace

std::string label_of(const Fabric& fabric, const FlowId& id) {
  return label_of_pair(fabric, id.pair()) + hexadecimal(id.destination_qpn);
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
  if (flow.kind(now_ns) != FlowKind::kData)
    return "only off a way that takes no flows: it carries no message data, and acknowledgements are background";
  std::string why = unsteerable(flow);
  if (why.empty()) why = parts_.overrides->why_pinned(flow.id);
  return why.empty() ? parts_.mover->hold(flow, now_ns) : why;
}

const PairOptions& PlanBuilder::options_for(const AddressPair& pair) {
  Kept& kept = kept_[pair];
  const std::uint64_t version = parts_.knowledge->version_of(pair);
  if (kept.version != version) kept.options = options_of(*parts_.routing, *parts_.knowledge, pair);
  kept.version = version;
  kept.last_job = jobs_;
  return kept.options;
}

PlanBuilder::PairInJob PlanBuilder::begin_pair(PlanJob& job, const AddressPair& pair) {
  PairInJob in_job{.pair = pair,
                   .options = &options_for(pair),
                   .indices = {},
                   .by_port = {},
                   .label = label_of_pair(*job.fabric, pair)};
  for (const Path& path : in_job.options->paths) {
    in_job.indices.push_back(job.input.paths.add(path.links));
    in_job.by_port.push_back(not_by_port(*job.fabric, path.links, pair, false).empty());
  }
  return in_job;
}

/// The flow as it is, with why it may not be moved. `forced`: its way takes no flows, or nothing arrives by it; then it
/// is moved whatever it is, and whenever it was moved last.
traffic::PlanFlow PlanBuilder::snapshot(PlanJob& job, const PairInJob& pair, const Flow& flow, bool& forced,
                                        std::int64_t now_ns) const {
  traffic::PlanFlow planned;
  planned.label = pair.label + hexadecimal(flow.id.destination_qpn);
  planned.elastic = flow.kind(now_ns) == FlowKind::kData;
  planned.measured_bps = flow.last_rates().rate_bps;
  planned.current_port = parts_.mover->expected_port(flow, now_ns);
  const ComposedPath& way = parts_.knowledge->way(pair.pair, planned.current_port);
  bool by_port = false;
  if (way.reaches()) {
    const auto known =
        std::ranges::find_if(pair.options->paths, [&](const Path& path) { return same_links(path.links, way.links); });
    const auto index = static_cast<std::size_t>(known - pair.options->paths.begin());
    const bool told_apart = known != pair.options->paths.end();
    planned.current_path = told_apart ? pair.indices[index] : job.input.paths.add(way.links);
    by_port = told_apart && pair.by_port[index];
  } else if (way.status == ComposedPath::Status::kBroken) {
    planned.current_path = job.input.paths.add(way.links);
  }
  const bool known = planned.current_path != traffic::kUnknownPath;
  const bool closed = known && !traffic::takes_flows(*job.fabric, way.links);
  planned.must_leave = !known && parts_.link_watch->lost(flow.id);
  forced = closed || planned.must_leave;
  planned.immovable = forced ? unsteerable(flow) : immovable(flow, now_ns);
  if (planned.immovable.empty() && known && !by_port) {
    planned.immovable = not_by_port(*job.fabric, way.links, pair.pair, closed);
  }
  return planned;
}

/// A port that may lead onto several parallel links is offered once.
void PlanBuilder::add_candidates(const Fabric& fabric, const PairInJob& pair, const Flow& flow,
                                 const traffic::PlanFlow& planned, bool forced,
                                 std::vector<traffic::Candidate>& candidates) const {
  for (std::size_t i = 0; i < pair.indices.size(); ++i) {
    const bool by_port =
        pair.by_port[i] || (forced && not_by_port(fabric, pair.options->paths[i].links, pair.pair, true).empty());
    const std::uint16_t to = by_port ? port_for(*pair.options, i, flow, planned.current_port) : std::uint16_t{0};
    const bool offered = std::ranges::any_of(candidates, [to](const auto& other) { return other.port == to; });
    if (to != 0 && !offered) candidates.push_back({.path = pair.indices[i], .port = to});
  }
}

std::shared_ptr<const PlanJob> PlanBuilder::build(std::shared_ptr<const Fabric> fabric, std::int64_t now_ns) {
  auto job = std::make_shared<PlanJob>();
  ++jobs_;
  job->fabric = std::move(fabric);
  job->input.limits = {.moves_per_cycle = static_cast<std::size_t>(options_.moves_per_cycle),
                       .hysteresis = options_.hysteresis};
  job->input.flows.reserve(parts_.fleet->flows().size());
  job->flows.reserve(parts_.fleet->flows().size());
  PairInJob pair;  // flows of a pair follow each other
  std::vector<traffic::Candidate> candidates;
  for (const auto& [id, flow] : parts_.fleet->flows()) {
    if (flow.kind(now_ns) == FlowKind::kIdle) continue;
    if (pair.options == nullptr || pair.pair != id.pair()) pair = begin_pair(*job, id.pair());
    bool forced = false;
    traffic::PlanFlow planned = snapshot(*job, pair, flow, forced, now_ns);
    candidates.clear();
    if ((planned.elastic || forced) && planned.immovable.empty())
      add_candidates(*job->fabric, pair, flow, planned, forced, candidates);
    job->input.add_flow(std::move(planned), candidates);
    job->flows.push_back(id);
  }
  std::erase_if(kept_, [&](const auto& entry) { return entry.second.last_job != jobs_; });
  return job;
}

}  // namespace te
