// SPDX-License-Identifier: Apache-2.0
#include <algorithm>
#include <cmath>
#include <utility>

#include "te-controller/traffic/search.h"

namespace te::traffic {
namespace {

/// Flow-links that all exact evaluations together may look at; about 15 ns each.
constexpr std::size_t kExactWork = 1'500'000;
/// Below this many evaluations a local search gets nowhere.
constexpr std::size_t kFewestEvaluations = 100;

class Exact {
 public:
  Exact(const PlanInput& input, const Problem& problem) : input_(input), problem_(problem) {
    std::size_t links = 1;
    for (const PathIndex path : problem.start_path) links += path == kUnknownPath ? 1 : input.paths.links(path).size();
    left_ = kExactWork / (links + problem.capacity_bps.size() / 4);
    worthwhile_ = left_ >= kFewestEvaluations;
  }
  [[nodiscard]] bool worthwhile() const { return worthwhile_; }
  [[nodiscard]] bool spent() const { return left_ == 0; }
  std::vector<double> rates(const Placement& placement) {
    if (left_ > 0) --left_;
    return max_min_rates(problem_.capacity_bps, input_.paths, placement.paths());
  }

 private:
  const PlanInput& input_;
  const Problem& problem_;
  std::size_t left_ = 0;
  bool worthwhile_ = false;
};

/// Better in the strict order (so that a search never runs in a circle), and by enough.
bool pays(std::span<const double> rates, std::span<const double> before, double least_gain) {
  return compare_slowest_first(rates, before, least_gain) > 0 && compare_slowest_first(rates, before, 1e-9) > 0;
}

class Polisher {
 public:
  Polisher(const PlanInput& input, const Problem& problem, Placement start, double least_gain)
      : problem_(problem), exact_(input, problem), work_(std::move(start)), least_gain_(least_gain) {}

  Placement run() {
    if (!exact_.worthwhile()) return work_;
    rates_ = exact_.rates(work_);
    slowest_bps_ = work_.slowest_bps();
    while (!exact_.spent() && improve()) {
    }
    return work_;
  }

 private:
  /// Tries the narrowest links that some unit could leave, slowest first; true when one move or swap was kept.
  bool improve() {
    std::vector<std::pair<double, LinkId>> narrow;
    for (LinkId link = 0; link < problem_.capacity_bps.size(); ++link) {
      if (!work_.units_on(link).empty()) narrow.emplace_back(rate_on(link), link);
    }
    std::sort(narrow.begin(), narrow.end());
    for (const auto& [rate, link] : narrow) {
      const std::vector<std::uint32_t> units = work_.units_on(link);
      for (const std::uint32_t unit : units) {
        if (try_unit(unit, link)) return true;
        if (exact_.spent()) return false;
      }
    }
    return false;
  }

  /// Rate of the slowest unit on the link.
  [[nodiscard]] double rate_on(LinkId link) const {
    double slowest = problem_.capacity_bps[link];
    for (const std::uint32_t unit : work_.units_on(link)) slowest = std::min(slowest, rates_[problem_.unit_flow[unit]]);
    return slowest;
  }

  bool try_unit(std::uint32_t unit, LinkId link) {
    const std::uint32_t now = work_.option(unit);
    for (std::uint32_t option = problem_.unit_option_begin[unit]; option < problem_.unit_option_begin[unit + 1];
         ++option) {
      const auto entering = problem_.varying(option);
      if (option == now || std::find(entering.begin(), entering.end(), link) != entering.end()) continue;
      work_.put(unit, option);
      if (keep_if_better()) return true;
      if (try_swap(unit, entering)) return true;
      work_.put(unit, now);
      if (exact_.spent()) return false;
    }
    return false;
  }

  /// `unit` has just entered `links`; another that is there makes room.
  bool try_swap(std::uint32_t unit, std::span<const LinkId> links) {
    for (const LinkId link : links) {
      const std::vector<std::uint32_t> others = work_.units_on(link);
      for (const std::uint32_t other : others) {
        if (other == unit) continue;
        const std::uint32_t now = work_.option(other);
        for (std::uint32_t option = problem_.unit_option_begin[other]; option < problem_.unit_option_begin[other + 1];
             ++option) {
          const auto entering = problem_.varying(option);
          if (option == now || std::find(entering.begin(), entering.end(), link) != entering.end()) continue;
          work_.put(other, option);
          if (keep_if_better()) return true;
          work_.put(other, now);
          if (exact_.spent()) return false;
        }
      }
    }
    return false;
  }

  bool keep_if_better() {
    // The slowest flow follows from the link loads alone: most tries end here.
    const double slowest_bps = work_.slowest_bps();
    if (slowest_bps < slowest_bps_ * (1 - 1e-9)) return false;
    auto rates = exact_.rates(work_);
    if (!pays(rates, rates_, least_gain_)) return false;
    rates_ = std::move(rates);
    slowest_bps_ = slowest_bps;
    return true;
  }

  const Problem& problem_;
  Exact exact_;
  Placement work_;
  double least_gain_;
  std::vector<double> rates_;
  double slowest_bps_ = 0;
};

/// The congestion that matters: none where the demand of all flows on the link fits.
double congestion(const Problem& problem, const Placement& placement, LinkId link, double tolerance) {
  if (placement.demand_bps(link) <= problem.capacity_bps[link] * (1 + tolerance)) return 0;
  return placement.flows(link) * problem.inverse_capacity[link];
}

}  // namespace

Placement polish(const PlanInput& input, const Problem& problem, const Placement& start, double least_gain) {
  return Polisher(input, problem, start, least_gain).run();
}

Placement prune(const PlanInput& input, const Problem& problem, const Bounds& bounds, const Placement& goal,
                double tolerance) {
  Placement work = goal;
  Exact exact(input, problem);
  const bool exactly = exact.worthwhile();
  const std::vector<double> rates = exactly ? exact.rates(goal) : std::vector<double>();
  const auto harmless = [&](std::uint32_t option) {
    if (exactly) {
      const auto after = exact.rates(work);
      return compare_slowest_first(after, rates, tolerance) >= 0;
    }
    const auto entered = problem.varying(option);
    return std::all_of(entered.begin(), entered.end(), [&](LinkId link) {
      return congestion(problem, work, link, tolerance) <= bounds.by_link[link] * (1 + tolerance);
    });
  };
  for (bool any = true; any;) {
    any = false;
    for (std::uint32_t unit = 0; unit < problem.units(); ++unit) {
      const std::uint32_t origin = problem.unit_origin[unit];
      const std::uint32_t moved_to = work.option(unit);
      if (origin == kNoOption || origin == moved_to) continue;
      if (exactly && exact.spent()) return work;
      work.put(unit, origin);
      if (harmless(origin)) {
        any = true;
      } else {
        work.put(unit, moved_to);
      }
    }
  }
  return work;
}

}  // namespace te::traffic
