// SPDX-License-Identifier: Apache-2.0
#include <algorithm>
#include <functional>
#include <utility>

#include "te-controller/traffic/search.h"

namespace te::traffic {
namespace {

/// Units that must leave one switch, or reach one, over `links`. `flows`: how many flows these links carry at least.
struct Group {
  std::vector<LinkId> links;
  std::uint32_t flows = 0;
};

/// Lowest congestion at which whole flows fit: each goes where it hurts least.
double fill(const Problem& problem, const Group& group) {
  using Slot = std::pair<double, LinkId>;  // congestion after one more flow
  std::vector<Slot> heap;
  std::vector<std::uint32_t> flows(group.links.size(), 0);
  for (std::uint32_t i = 0; i < group.links.size(); ++i) heap.emplace_back(problem.inverse_capacity[group.links[i]], i);
  std::make_heap(heap.begin(), heap.end(), std::greater<>());
  double congestion = 0;
  for (std::uint32_t n = 0; n < group.flows; ++n) {
    std::pop_heap(heap.begin(), heap.end(), std::greater<>());
    Slot& slot = heap.back();
    congestion = std::max(congestion, slot.first);
    slot.first = (++flows[slot.second] + 1) * problem.inverse_capacity[group.links[slot.second]];
    std::push_heap(heap.begin(), heap.end(), std::greater<>());
  }
  return congestion;
}

class Grouping {
 public:
  Grouping(const Fabric& fabric, const Problem& problem) : fabric_(fabric), problem_(problem) {
    leaving_ = {std::vector<std::size_t>(fabric.nodes().size(), kNoGroup), std::vector<char>(fabric.links().size(), 0)};
    reaching_ = leaving_;
  }

  std::vector<Group> run() {
    for (std::uint32_t unit = 0; unit < problem_.units(); ++unit) {
      const auto hops = problem_.varying(problem_.unit_option_begin[unit]).size();
      for (std::size_t hop = 0; hop < hops; ++hop) add_hop(unit, hop);
    }
    for (Group& group : groups_) {
      for (const LinkId link : group.links) group.flows += problem_.fixed_flows[link];
    }
    return std::move(groups_);
  }

 private:
  /// Adds a unit's links at one hop where all of them leave one switch or reach one.
  void add_hop(std::uint32_t unit, std::size_t hop) {
    links_.clear();
    for (std::uint32_t option = problem_.unit_option_begin[unit]; option < problem_.unit_option_begin[unit + 1];
         ++option) {
      const auto varying = problem_.varying(option);
      if (hop >= varying.size()) return;
      links_.push_back(varying[hop]);
    }
    const Link& first = fabric_.link(links_.front());
    const auto all = [&](auto same) { return std::all_of(links_.begin(), links_.end(), same); };
    if (all([&](LinkId link) { return fabric_.link(link).from == first.from; })) {
      add_to(first.from, leaving_);
    } else if (all([&](LinkId link) { return fabric_.link(link).to == first.to; })) {
      add_to(first.to, reaching_);
    }
  }

  /// Groups on one side of the switches, by node, and the links that already are in one.
  struct Side {
    std::vector<std::size_t> group_of_node;
    std::vector<char> listed;
  };
  static constexpr std::size_t kNoGroup = static_cast<std::size_t>(-1);

  void add_to(NodeId node, Side& side) {
    std::size_t& index = side.group_of_node[node];
    if (index == kNoGroup) {
      index = groups_.size();
      groups_.emplace_back();
    }
    Group& group = groups_[index];
    ++group.flows;
    for (const LinkId link : links_) {
      if (side.listed[link] == 0) group.links.push_back(link);
      side.listed[link] = 1;
    }
  }

  const Fabric& fabric_;
  const Problem& problem_;
  std::vector<LinkId> links_;
  Side leaving_;
  Side reaching_;
  std::vector<Group> groups_;
};

}  // namespace

Bounds pigeonhole_bounds(const Fabric& fabric, const Problem& problem) {
  Bounds bounds;
  bounds.by_link.assign(problem.capacity_bps.size(), 0);
  for (std::size_t link = 0; link < bounds.by_link.size(); ++link) {
    bounds.overall = std::max(bounds.overall, problem.fixed_flows[link] * problem.inverse_capacity[link]);
  }
  double of_groups = 0;
  for (const Group& group : Grouping(fabric, problem).run()) {
    const double congestion = fill(problem, group);
    of_groups = std::max(of_groups, congestion);
    for (const LinkId link : group.links) bounds.by_link[link] = std::max(bounds.by_link[link], congestion);
  }
  bounds.overall = std::max(bounds.overall, of_groups);
  for (double& congestion : bounds.by_link) {
    if (congestion <= 0) congestion = of_groups > 0 ? of_groups : bounds.overall;
  }
  return bounds;
}

}  // namespace te::traffic
