// SPDX-License-Identifier: Apache-2.0
#include <algorithm>
#include <cmath>
#include <limits>
#include <utility>

#include "te-controller/traffic/search.h"

namespace te::traffic {
namespace {

/// Work is counted in links looked at, so that a plan never depends on the speed of the machine. 3 to 7 ns each.
constexpr std::int64_t kMostWork = 12'000'000;
/// Enough for the smallest problems; larger ones get this much more for each link of each option.
constexpr std::int64_t kLeastWork = 100'000;
constexpr std::int64_t kWorkPerOptionLink = 1'000;
constexpr int kTries = 6;
constexpr std::size_t kMostLevels = 32;
/// Units looked at for a better move once one is found that lowers congestion.
constexpr std::size_t kEnoughSeen = 6;
/// Steps of one repair that may pass without a gain.
constexpr std::size_t kStepsWithoutGain = 100;
constexpr std::size_t kStepsWithoutGainPerUnit = 10;

/// splitmix64 (Steele, Lea, Flood 2014): the same sequence everywhere.
class Random {
 public:
  explicit Random(std::uint64_t seed) : state_(seed) {}
  std::uint32_t below(std::uint32_t bound) {
    std::uint64_t z = state_ += 0x9E3779B97F4A7C15ULL;
    z = (z ^ (z >> 30)) * 0xBF58476D1CE4E5B9ULL;
    z = (z ^ (z >> 27)) * 0x94D049BB133111EBULL;
    return static_cast<std::uint32_t>(((z ^ (z >> 31)) >> 32) * bound >> 32);
  }

 private:
  std::uint64_t state_;
};

/// Min-conflict repair towards whole slots a link.
class Repair {
 public:
  Repair(const Problem& problem, Placement start, double tolerance, std::uint64_t seed)
      : problem_(problem), work_(std::move(start)), tolerance_(tolerance), random_(seed), tabu_(problem.units(), 0) {
    const std::size_t links = problem.capacity_bps.size();
    slots_.resize(links);
    fits_bps_.resize(links);
    for (std::size_t link = 0; link < links; ++link) fits_bps_[link] = problem.capacity_bps[link] * (1 + tolerance);
  }

  /// Aims at the congestion of `bounds`, but nowhere below `least`.
  void aim(const Bounds& bounds, double least) {
    for (std::size_t link = 0; link < slots_.size(); ++link) {
      const double congestion = std::max(bounds.by_link[link], least);
      slots_[link] =
          static_cast<std::uint32_t>(std::floor(congestion * problem_.capacity_bps[link] * (1 + tolerance_) + 1e-9));
    }
  }

  /// True when no link with a way out is over its slots; spends at most `budget`, and gives up once as many steps as
  /// would move each unit some times brought the flows beyond slots no lower.
  bool run(std::int64_t& budget) {
    const auto patience = static_cast<std::uint32_t>(kStepsWithoutGain + kStepsWithoutGainPerUnit * problem_.units());
    std::uint32_t gained_at = 0;
    least_excess_ = excess_ = 0;
    hot_.clear();
    for (LinkId link = 0; link < slots_.size(); ++link) {
      if (over(link)) hot_.push_back(link);
    }
    std::fill(tabu_.begin(), tabu_.end(), 0U);
    for (std::uint32_t step = 1; !hot_.empty(); ++step) {
      const std::size_t pick = hot_.size() > 1 && random_.below(4) == 0
                                   ? random_.below(static_cast<std::uint32_t>(hot_.size()))
                                   : hot_.size() - 1;
      const LinkId link = hot_[pick];
      if (!over(link)) {
        hot_[pick] = hot_.back();
        hot_.pop_back();
        continue;
      }
      if (budget <= 0 || !relieve(link, step, budget)) return false;
      if (excess_ < least_excess_) {
        least_excess_ = excess_;
        gained_at = step;
      }
      if (step - gained_at > patience) return false;
    }
    return true;
  }

  [[nodiscard]] const Placement& placement() const { return work_; }

 private:
  struct Move {
    std::uint32_t unit = 0;
    std::uint32_t option = kNoOption;
    std::int32_t excess = std::numeric_limits<std::int32_t>::max();  ///< change of flows beyond slots
    std::int32_t moves = 0;                                          ///< change of moves in the plan
    std::uint32_t ties = 0;
  };

  [[nodiscard]] std::int32_t excess(LinkId link, std::uint32_t flows, double demand) const {
    if (flows <= slots_[link] || demand <= fits_bps_[link]) return 0;
    return static_cast<std::int32_t>(flows - slots_[link]);
  }
  [[nodiscard]] std::int32_t excess(LinkId link) const {
    return excess(link, work_.flows(link), work_.demand_bps(link));
  }
  /// Over its slots with a unit on it that could go elsewhere.
  [[nodiscard]] bool over(LinkId link) const { return !work_.units_on(link).empty() && excess(link) > 0; }

  bool relieve(LinkId link, std::uint32_t step, std::int64_t& budget) {
    const auto& units = work_.units_on(link);
    const auto first = random_.below(static_cast<std::uint32_t>(units.size()));
    Move best;
    std::size_t seen = 0;
    for (const bool ignore_tabu : {false, true}) {
      for (std::size_t i = 0; i < units.size(); ++i) {
        const std::uint32_t unit = units[(first + i) % units.size()];
        if (!ignore_tabu && tabu_[unit] > step) continue;
        consider(unit, best, budget);
        if (best.excess < 0 && (best.moves <= 0 || ++seen >= kEnoughSeen)) break;
      }
      if (best.option != kNoOption) break;
    }
    if (best.option == kNoOption) return false;
    work_.put(best.unit, best.option);
    excess_ += best.excess;
    tabu_[best.unit] = step + 8 + random_.below(16);
    for (const LinkId touched : problem_.varying(best.option)) {
      if (over(touched)) hot_.push_back(touched);
    }
    return true;
  }

  void consider(std::uint32_t unit, Move& best, std::int64_t& budget) {
    const std::uint32_t now = work_.option(unit);
    const std::uint32_t begin = problem_.unit_option_begin[unit];
    const std::uint32_t count = problem_.unit_option_begin[unit + 1] - begin;
    const std::uint32_t offset = random_.below(count);
    const auto leaving = problem_.varying(now);
    const double demand = problem_.unit_demand_bps[unit];
    std::int32_t relief = 0;
    for (const LinkId link : leaving) {
      const std::uint32_t flows = work_.flows(link);
      relief += excess(link, flows - 1, work_.demand_bps(link) - demand) - excess(link);
    }
    for (std::uint32_t i = 0; i < count; ++i) {
      const std::uint32_t option = begin + (offset + i < count ? offset + i : offset + i - count);
      if (option == now) continue;
      const auto entering = problem_.varying(option);
      budget -= static_cast<std::int64_t>(entering.size());
      std::int32_t change = relief;
      for (const LinkId link : entering) {
        const bool stays = std::find(leaving.begin(), leaving.end(), link) != leaving.end();
        const std::uint32_t flows = work_.flows(link);
        const double load = work_.demand_bps(link);
        if (stays) {
          change += excess(link, flows, load) - excess(link, flows - 1, load - demand);
        } else {
          change += excess(link, flows + 1, load + demand) - excess(link, flows, load);
        }
      }
      const std::int32_t moves = moves_of(unit, now, option);
      if (change > best.excess || (change == best.excess && moves > best.moves)) continue;
      const bool better = change < best.excess || moves < best.moves;
      best.ties = better ? 0 : best.ties + 1;
      if (better || random_.below(best.ties + 1) == 0) best = {unit, option, change, moves, best.ties};
    }
  }

  [[nodiscard]] std::int32_t moves_of(std::uint32_t unit, std::uint32_t now, std::uint32_t option) const {
    const std::uint32_t origin = problem_.unit_origin[unit];
    return (option != origin ? 1 : 0) - (now != origin ? 1 : 0);
  }

  const Problem& problem_;
  Placement work_;
  double tolerance_;
  Random random_;
  std::vector<std::uint32_t> tabu_;
  std::vector<std::uint32_t> slots_;
  std::vector<double> fits_bps_;
  std::vector<LinkId> hot_;
  std::int64_t excess_ = 0;  ///< flows beyond slots, over those at the start of the run
  std::int64_t least_excess_ = 0;
};

/// Congestions worth aiming at between the bound and what is there now, lowest first.
std::vector<double> levels(const Problem& problem, const Bounds& bounds, const Placement& start, double tolerance) {
  double worst = 0;
  std::vector<double> capacities;
  for (LinkId link = 0; link < problem.capacity_bps.size(); ++link) {
    if (start.units_on(link).empty()) continue;
    worst = std::max(worst, start.flows(link) * problem.inverse_capacity[link]);
    capacities.push_back(problem.capacity_bps[link]);
  }
  std::sort(capacities.begin(), capacities.end());
  const auto same = [&](double a, double b) { return b - a <= tolerance * b; };
  capacities.erase(std::unique(capacities.begin(), capacities.end(), same), capacities.end());
  double least = worst;
  for (LinkId link = 0; link < problem.capacity_bps.size(); ++link) {
    if (!start.units_on(link).empty()) least = std::min(least, bounds.by_link[link]);
  }
  std::vector<double> found;
  for (const double capacity : capacities) {
    for (double n = std::floor(least * capacity) + 1; n / capacity < worst * (1 + tolerance); ++n)
      found.push_back(n / capacity);
  }
  std::sort(found.begin(), found.end());
  found.erase(std::unique(found.begin(), found.end(), same), found.end());
  if (found.size() > kMostLevels) {  // a geometric choice of them
    std::vector<double> fewer;
    for (std::size_t i = 0; i < kMostLevels; ++i) fewer.push_back(found[i * (found.size() - 1) / (kMostLevels - 1)]);
    found = std::move(fewer);
  }
  return found;
}

std::int64_t work_for(const Problem& problem) {
  const auto size = static_cast<std::int64_t>(problem.option_links.size());
  return std::min(kMostWork, kLeastWork + kWorkPerOptionLink * size);
}

}  // namespace

Placement balance(const Problem& problem, const Bounds& bounds, const Placement& start, double tolerance,
                  std::int64_t& work) {
  const std::int64_t most = work_for(problem);
  std::int64_t left = most;
  const auto spend = [&](Repair& repair, std::int64_t given) {
    std::int64_t budget = given;
    const bool reached = repair.run(budget);
    left -= given - budget;
    work += given - budget;
    return reached;
  };
  for (int attempt = 0; attempt < kTries && left > most / 2; ++attempt) {
    Repair repair(problem, start, tolerance, 1 + static_cast<std::uint64_t>(attempt));
    repair.aim(bounds, 0);
    const std::int64_t a_try = 200'000 + 400 * static_cast<std::int64_t>(problem.units());
    if (spend(repair, std::min(left - most / 2, a_try))) return repair.placement();
  }
  const std::vector<double> aims = levels(problem, bounds, start, tolerance);
  Placement best = start;
  std::size_t low = 0;
  std::size_t high = aims.size();
  while (low < high && left > 0) {
    const std::size_t middle = (low + high) / 2;
    Repair repair(problem, start, tolerance, 101 + middle);
    repair.aim(bounds, aims[middle]);
    if (spend(repair, left / 3)) {
      best = repair.placement();
      high = middle;
    } else {
      low = middle + 1;
    }
  }
  return best;
}

}  // namespace te::traffic
