// SPDX-License-Identifier: Apache-2.0
#include <algorithm>
#include <functional>
#include <unordered_map>
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
  Grouping(const Fabric& fabric, const Problem& problem) : fabric_(fabric), problem_(problem) {}

  std::vector<Group> run() {
    for (std::uint32_t unit = 0; unit < problem_.units(); ++unit) {
      const auto hops = problem_.varying(problem_.unit_option_begin[unit]).size();
      for (std::size_t hop = 0; hop < hops; ++hop) add_hop(unit, hop);
    }
    for (Group& group : groups_) {
      std::sort(group.links.begin(), group.links.end());
      group.links.erase(std::unique(group.links.begin(), group.links.end()), group.links.end());
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
    std::uint64_t key = 0;
    if (all([&](LinkId link) { return fabric_.link(link).from == first.from; })) {
      key = std::uint64_t{first.from} << 1;
    } else if (all([&](LinkId link) { return fabric_.link(link).to == first.to; })) {
      key = std::uint64_t{first.to} << 1 | 1;
    } else {
      return;
    }
    const auto [found, added] = index_.emplace(key, groups_.size());
    if (added) groups_.emplace_back();
    Group& group = groups_[found->second];
    ++group.flows;
    for (const LinkId link : links_) {
      if (group.links.empty() || group.links.back() != link) group.links.push_back(link);
    }
    if (group.links.size() > kCompactAt) {
      std::sort(group.links.begin(), group.links.end());
      group.links.erase(std::unique(group.links.begin(), group.links.end()), group.links.end());
    }
  }

  static constexpr std::size_t kCompactAt = 4096;
  const Fabric& fabric_;
  const Problem& problem_;
  std::vector<LinkId> links_;
  std::unordered_map<std::uint64_t, std::size_t> index_;
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
