// SPDX-License-Identifier: Apache-2.0
#include <algorithm>
#include <cmath>
#include <functional>
#include <limits>
#include <span>
#include <utility>

#include "te-controller/traffic/search.h"

namespace te::traffic {
namespace {

/// More of them than this hardly ever are what is narrow.
constexpr std::size_t kMostPartners = 4;
constexpr double kMostSlots = 1e8;
constexpr int kMostRaises = 64;
constexpr std::uint32_t kNoLimit = 0xFFFFFFFFU;

/// Links of which a unit crosses one whenever it crosses a certain other link.
struct Partners {
  std::vector<LinkId> links;
  bool many = false;  ///< more than kMostPartners, not listed
};

/// Units that must leave one switch, or reach one, over `links`. `flows`: how many flows these links carry at least.
struct Group {
  std::vector<LinkId> links;
  std::vector<Partners> partners;  ///< of each link: the next hop where they leave, the one before where they reach
  std::uint32_t flows = 0;
};

/// Flows that the n-th link of a group can carry when no link has a congestion beyond `congestion`, or beyond what
/// `levels` (by link; may be empty) grants it.
std::uint32_t room(const Problem& problem, const Group& group, std::size_t n, double congestion,
                   std::span<const double> levels) {
  const auto slots = [&](LinkId link) {
    const double granted = levels.empty() ? congestion : std::max(congestion, levels[link]);
    return static_cast<std::uint32_t>(std::min(kMostSlots, granted * problem.capacity_bps[link] * (1 + 1e-9)));
  };
  const LinkId link = group.links[n];
  const std::uint32_t own = slots(link);
  const Partners& partners = group.partners[n];
  if (partners.many) return own;
  std::uint32_t beyond = problem.fixed_flows[link];
  for (const LinkId partner : partners.links)
    beyond += slots(partner) - std::min(slots(partner), problem.fixed_flows[partner]);
  return std::min(own, beyond);
}

bool fits(const Problem& problem, const Group& group, double congestion) {
  std::uint64_t all = 0;
  for (std::size_t n = 0; n < group.links.size(); ++n) all += room(problem, group, n, congestion, {});
  return all >= group.flows;
}

/// The lowest congestion beyond `congestion` at which one of the group's links, or of those beyond, holds a flow more.
double next_level(const Problem& problem, const Group& group, double congestion) {
  double least = std::numeric_limits<double>::infinity();
  const auto look = [&](LinkId link) {
    const double slots = std::floor(congestion * problem.capacity_bps[link] * (1 + 1e-9));
    if (problem.capacity_bps[link] > 0) least = std::min(least, (slots + 1) * problem.inverse_capacity[link]);
  };
  for (std::size_t n = 0; n < group.links.size(); ++n) {
    look(group.links[n]);
    for (const LinkId partner : group.partners[n].links) look(partner);
  }
  return least;
}

/// Lowest congestion, from `congestion` on, at which the group's flows fit; a lower one where that is too far to seek.
double raise(const Problem& problem, const Group& group, double congestion) {
  for (int n = 0; n < kMostRaises && !fits(problem, group, congestion); ++n) {
    const double next = next_level(problem, group, congestion);
    if (next == std::numeric_limits<double>::infinity()) break;
    congestion = next;
  }
  return congestion;
}

/// Most flows for each link of a group.
using Limits = std::vector<std::uint32_t>;

/// Lowest congestion at which whole flows fit: each goes where it hurts least, within the limits.
double fill(const Problem& problem, const Group& group, const Limits& limits) {
  using Slot = std::pair<double, LinkId>;  // congestion after one more flow
  std::vector<Slot> heap;
  std::vector<std::uint32_t> flows(group.links.size(), 0);
  for (std::uint32_t i = 0; i < group.links.size(); ++i) heap.emplace_back(problem.inverse_capacity[group.links[i]], i);
  std::make_heap(heap.begin(), heap.end(), std::greater<>());
  double congestion = 0;
  for (std::uint32_t n = 0; n < group.flows && !heap.empty(); ++n) {
    std::pop_heap(heap.begin(), heap.end(), std::greater<>());
    Slot& slot = heap.back();
    if (flows[slot.second] >= limits[slot.second]) {
      heap.pop_back();
      --n;
      continue;
    }
    congestion = std::max(congestion, slot.first);
    slot.first = (++flows[slot.second] + 1) * problem.inverse_capacity[group.links[slot.second]];
    std::push_heap(heap.begin(), heap.end(), std::greater<>());
  }
  return congestion;
}

class Grouping {
 public:
  Grouping(const Fabric& fabric, const Problem& problem) : fabric_(fabric), problem_(problem) {
    leaving_ = {std::vector<std::size_t>(fabric.nodes().size(), kNoGroup),
                std::vector<std::size_t>(fabric.links().size(), kNoPlace)};
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
      add_to(first.from, leaving_, unit, hop, hop + 1);
    } else if (all([&](LinkId link) { return fabric_.link(link).to == first.to; })) {
      add_to(first.to, reaching_, unit, hop, hop - 1);
    }
  }

  /// Groups on one side of the switches, by node, and the place that a link has in one.
  struct Side {
    std::vector<std::size_t> group_of_node;
    std::vector<std::size_t> place;
  };
  static constexpr std::size_t kNoPlace = static_cast<std::size_t>(-1);
  static constexpr std::size_t kNoGroup = static_cast<std::size_t>(-1);

  /// `beyond`: the hop past the group's; there may be none.
  void add_to(NodeId node, Side& side, std::uint32_t unit, std::size_t hop, std::size_t beyond) {
    std::size_t& index = side.group_of_node[node];
    if (index == kNoGroup) {
      index = groups_.size();
      groups_.emplace_back();
    }
    Group& group = groups_[index];
    ++group.flows;
    for (const LinkId link : links_) {
      if (side.place[link] != kNoPlace) continue;
      side.place[link] = group.links.size();
      group.links.push_back(link);
      group.partners.emplace_back();
    }
    for (std::uint32_t option = problem_.unit_option_begin[unit]; option < problem_.unit_option_begin[unit + 1];
         ++option) {
      const auto varying = problem_.varying(option);
      Partners& partners = group.partners[side.place[varying[hop]]];
      if (beyond < varying.size()) {
        add_partner(partners, varying[beyond]);
      } else {
        partners.many = true;
      }
    }
  }

  static void add_partner(Partners& partners, LinkId link) {
    auto& links = partners.links;
    if (partners.many || std::find(links.begin(), links.end(), link) != links.end()) return;
    partners.many = links.size() == kMostPartners;
    if (!partners.many) links.push_back(link);
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
  const std::vector<Group> groups = Grouping(fabric, problem).run();
  double of_groups = 0;
  std::vector<double> of_group;
  std::vector<double> levels(bounds.by_link.size(), 0);
  for (const Group& group : groups) {
    const double congestion = raise(problem, group, fill(problem, group, Limits(group.links.size(), kNoLimit)));
    of_group.push_back(congestion);
    of_groups = std::max(of_groups, congestion);
    for (const LinkId link : group.links) levels[link] = std::max(levels[link], congestion);
  }
  for (std::size_t i = 0; i < groups.size(); ++i) {
    const Group& group = groups[i];
    Limits limits;
    for (std::size_t n = 0; n < group.links.size(); ++n) limits.push_back(room(problem, group, n, of_group[i], levels));
    const double congestion = fill(problem, group, limits);
    for (const LinkId link : group.links) bounds.by_link[link] = std::max(bounds.by_link[link], congestion);
  }
  bounds.overall = std::max(bounds.overall, of_groups);
  for (double& congestion : bounds.by_link) {
    if (congestion <= 0) congestion = of_groups > 0 ? of_groups : bounds.overall;
  }
  return bounds;
}

}  // namespace te::traffic
