// SPDX-License-Identifier: Apache-2.0
#include "tests/support/planning_instance.h"

#include <map>

namespace te::traffic {
namespace {

PortId nic(const Fabric& fabric, std::uint32_t host) {
  return *fabric.find_port(*fabric.find_node("h" + std::to_string(host)), "eth0");
}

}  // namespace

std::uint32_t TestRandom::below(std::uint32_t bound) {
  std::uint64_t z = state_ += 0x9E3779B97F4A7C15ULL;
  z = (z ^ (z >> 30)) * 0xBF58476D1CE4E5B9ULL;
  z = (z ^ (z >> 27)) * 0x94D049BB133111EBULL;
  return static_cast<std::uint32_t>(((z ^ (z >> 31)) >> 32) * bound >> 32);
}

Instance::Instance(const Fabric& fabric, const std::vector<std::pair<std::uint32_t, std::uint32_t>>& ends,
                   TestRandom& random) {
  Routing routing(fabric);
  std::map<std::pair<std::uint32_t, std::uint32_t>, std::vector<PathIndex>> known;
  for (const auto& [source, destination] : ends) {
    auto& paths = known[{source, destination}];
    if (paths.empty()) {
      for (const Path& path : routing.paths(nic(fabric, source), nic(fabric, destination)).paths) {
        paths.push_back(input.paths.add(path.links));
      }
    }
    std::vector<Candidate> candidates;
    for (const PathIndex path : paths)
      candidates.push_back({path, static_cast<std::uint16_t>(49152 + candidates.size())});
    PlanFlow flow;
    flow.label = "h" + std::to_string(source) + " -> h" + std::to_string(destination);
    const Candidate& now = candidates[random.below(static_cast<std::uint32_t>(candidates.size()))];
    flow.current_path = now.path;
    flow.current_port = now.port;
    input.add_flow(std::move(flow), candidates);
  }
  input.limits.moves_per_cycle = ends.size();
}

std::uint32_t Instance::candidate_of(std::size_t flow, PathIndex path) const {
  const PlanFlow& of = input.flows[flow];
  for (std::uint32_t i = 0; i < of.candidate_count; ++i) {
    if (input.candidates[of.first_candidate + i].path == path) return i;
  }
  return of.candidate_count;
}

void Instance::place(std::size_t flow, std::uint32_t candidate) {
  PlanFlow& of = input.flows[flow];
  of.current_path = input.candidates[of.first_candidate + candidate].path;
  of.current_port = input.candidates[of.first_candidate + candidate].port;
}

void Instance::narrow(const Fabric& fabric, const std::string& one, const std::string& other, double share) {
  const NodeId a = *fabric.find_node(one);
  const NodeId b = *fabric.find_node(other);
  input.background_bps.resize(fabric.links().size(), 0);
  for (LinkId id = 0; id < fabric.links().size(); ++id) {
    const Link& link = fabric.link(id);
    const bool between = (link.from == a && link.to == b) || (link.from == b && link.to == a);
    if (between) input.background_bps[id] = link.capacity_bps * (1 - share);
  }
}

std::vector<std::pair<std::uint32_t, std::uint32_t>> alternating_ring(std::uint32_t hosts_per_leaf, std::uint32_t qps) {
  std::vector<std::uint32_t> ring;
  for (std::uint32_t i = 1; i <= hosts_per_leaf; ++i) {
    ring.push_back(i);
    ring.push_back(i + hosts_per_leaf);
  }
  std::vector<std::pair<std::uint32_t, std::uint32_t>> ends;
  for (std::size_t i = 0; i < ring.size(); ++i) ends.insert(ends.end(), qps, {ring[i], ring[(i + 1) % ring.size()]});
  return ends;
}

std::vector<std::pair<std::uint32_t, std::uint32_t>> random_pairs(std::uint32_t hosts, std::uint32_t count,
                                                                  TestRandom& random) {
  std::vector<std::pair<std::uint32_t, std::uint32_t>> ends;
  while (ends.size() < count) {
    const std::uint32_t source = 1 + random.below(hosts);
    const std::uint32_t destination = 1 + random.below(hosts);
    if (source != destination) ends.emplace_back(source, destination);
  }
  return ends;
}

std::vector<std::uint32_t> link_flows(const Fabric& fabric, const PlanInput& input,
                                      const std::vector<PathIndex>& path_of) {
  std::vector<std::uint32_t> flows(fabric.links().size(), 0);
  for (std::size_t flow = 0; flow < path_of.size(); ++flow) {
    if (!input.flows[flow].elastic || path_of[flow] == kUnknownPath) continue;
    for (const LinkId link : input.paths.links(path_of[flow])) ++flows[link];
  }
  return flows;
}

std::vector<PathIndex> after_moves(const PlanInput& input, const Plan& plan, std::size_t moves) {
  std::vector<PathIndex> path_of;
  for (const PlanFlow& flow : input.flows) path_of.push_back(flow.elastic ? flow.current_path : kUnknownPath);
  for (std::size_t i = 0; i < moves; ++i) path_of[plan.moves[i].flow] = plan.moves[i].to_path;
  return path_of;
}

std::vector<double> rates_at(const Fabric& fabric, const PlanInput& input, const std::vector<PathIndex>& path_of) {
  return max_min_rates(elastic_capacity(fabric, {}), input.paths, path_of);
}

}  // namespace te::traffic
