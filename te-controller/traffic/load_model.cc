// SPDX-License-Identifier: Apache-2.0
#include "te-controller/traffic/load_model.h"

#include <algorithm>
#include <cmath>
#include <functional>
#include <utility>

namespace te::traffic {
namespace {

constexpr double kLeastShareOfCapacity = 0.001;
/// A share held in the heap is out of date when the link's own has grown by more than rounding.
constexpr double kGrown = 1 + 1e-12;

/// Progressive filling: links by the share they would give, smallest first; shares only grow, so a stale one goes back.
class Filling {
 public:
  Filling(std::span<const double> capacity_bps, const PathTable& paths, std::span<const PathIndex> path_of)
      : paths_(paths),
        path_of_(path_of),
        left_(capacity_bps.begin(), capacity_bps.end()),
        active_(capacity_bps.size()) {
    index_flows();
    for (LinkId link = 0; link < active_.size(); ++link) {
      if (active_[link] > 0) heap_.emplace_back(share(link), link);
    }
    std::make_heap(heap_.begin(), heap_.end(), std::greater<>());
  }

  std::vector<double> rates() {
    std::vector<double> rate(path_of_.size(), -1);
    for (std::size_t flow = 0; flow < path_of_.size(); ++flow) {
      if (path_of_[flow] == kUnknownPath) rate[flow] = 0;
    }
    while (!heap_.empty()) {
      std::pop_heap(heap_.begin(), heap_.end(), std::greater<>());
      const auto [held, link] = heap_.back();
      heap_.pop_back();
      if (active_[link] == 0) continue;
      const double now = share(link);
      if (now > held * kGrown) {
        heap_.emplace_back(now, link);
        std::push_heap(heap_.begin(), heap_.end(), std::greater<>());
        continue;
      }
      for (std::uint32_t i = begin_[link]; i < begin_[link + 1]; ++i) settle(flows_[i], now, rate);
    }
    return rate;
  }

 private:
  [[nodiscard]] double share(LinkId link) const { return left_[link] / active_[link]; }

  void settle(std::uint32_t flow, double rate_bps, std::vector<double>& rate) {
    if (rate[flow] >= 0) return;
    rate[flow] = rate_bps;
    for (const LinkId link : paths_.links(path_of_[flow])) {
      left_[link] = std::max(0.0, left_[link] - rate_bps);
      --active_[link];
    }
  }

  /// flows_[begin_[l]] .. flows_[begin_[l + 1]]: the flows over link l.
  void index_flows() {
    for (const PathIndex path : path_of_) {
      if (path == kUnknownPath) continue;
      for (const LinkId link : paths_.links(path)) ++active_[link];
    }
    begin_.assign(active_.size() + 1, 0);
    for (std::size_t link = 0; link < active_.size(); ++link) begin_[link + 1] = begin_[link] + active_[link];
    flows_.resize(begin_.back());
    std::vector<std::uint32_t> at(begin_.begin(), begin_.end() - 1);
    for (std::uint32_t flow = 0; flow < path_of_.size(); ++flow) {
      if (path_of_[flow] == kUnknownPath) continue;
      for (const LinkId link : paths_.links(path_of_[flow])) flows_[at[link]++] = flow;
    }
  }

  const PathTable& paths_;
  std::span<const PathIndex> path_of_;
  std::vector<double> left_;
  std::vector<std::uint32_t> active_;
  std::vector<std::uint32_t> begin_;
  std::vector<std::uint32_t> flows_;
  std::vector<std::pair<double, LinkId>> heap_;
};

}  // namespace

PathIndex PathTable::add(std::span<const LinkId> links) {
  TE_CHECK(!links.empty(), "a path has at least one link");
  const auto index = static_cast<PathIndex>(size());
  links_.insert(links_.end(), links.begin(), links.end());
  begin_.push_back(static_cast<std::uint32_t>(links_.size()));
  return index;
}

void PathTable::reserve(std::size_t paths, std::size_t links) {
  begin_.reserve(paths + 1);
  links_.reserve(links);
}

std::vector<double> elastic_capacity(const Fabric& fabric, std::span<const double> background_bps) {
  std::vector<double> capacity(fabric.links().size());
  for (LinkId link = 0; link < capacity.size(); ++link) {
    const Link& of = fabric.link(link);
    if (of.state == LinkState::kDown) continue;
    const double background = link < background_bps.size() ? background_bps[link] : 0;
    capacity[link] = std::max(of.capacity_bps - background, of.capacity_bps * kLeastShareOfCapacity);
  }
  return capacity;
}

std::vector<double> max_min_rates(std::span<const double> capacity_bps, const PathTable& paths,
                                  std::span<const PathIndex> path_of) {
  return Filling(capacity_bps, paths, path_of).rates();
}

int compare_slowest_first(std::span<const double> a, std::span<const double> b, double tolerance) {
  TE_CHECK(a.size() == b.size(), "rate vectors of different flows");
  std::vector<double> x(a.begin(), a.end());
  std::vector<double> y(b.begin(), b.end());
  std::sort(x.begin(), x.end());
  std::sort(y.begin(), y.end());
  for (std::size_t i = 0; i < x.size(); ++i) {
    if (std::fabs(x[i] - y[i]) > tolerance * std::max(x[i], y[i])) return x[i] < y[i] ? -1 : 1;
  }
  return 0;
}

}  // namespace te::traffic
