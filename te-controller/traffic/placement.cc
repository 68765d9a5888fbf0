// SPDX-License-Identifier: Apache-2.0
#include "te-controller/traffic/placement.h"

#include <algorithm>
#include <limits>

namespace te::traffic {

Placement::Placement(const Problem& problem)
    : problem_(&problem),
      option_(problem.units(), kNoOption),
      flows_(problem.fixed_flows),
      demand_(problem.fixed_demand_bps),
      on_(problem.capacity_bps.size()) {
  for (std::uint32_t unit = 0; unit < problem.units(); ++unit) put(unit, problem.unit_origin[unit]);
}

void Placement::count(std::uint32_t unit, std::uint32_t option, bool add) {
  const double demand = problem_->unit_demand_bps[unit];
  for (const LinkId link : problem_->varying(option)) {
    auto& units = on_[link];
    if (add) {
      ++flows_[link];
      demand_[link] += demand;
      units.push_back(unit);
    } else {
      --flows_[link];
      demand_[link] -= demand;
      *std::find(units.begin(), units.end(), unit) = units.back();
      units.pop_back();
    }
  }
}

void Placement::put(std::uint32_t unit, std::uint32_t option) {
  if (option_[unit] == option) return;
  if (option_[unit] != kNoOption) count(unit, option_[unit], false);
  if (option != kNoOption) count(unit, option, true);
  option_[unit] = option;
}

std::uint32_t Placement::least_loaded_option(std::uint32_t unit) const {
  std::uint32_t best = kNoOption;
  double least_worst = std::numeric_limits<double>::infinity();
  double least_squares = least_worst;
  for (std::uint32_t option = problem_->unit_option_begin[unit]; option < problem_->unit_option_begin[unit + 1];
       ++option) {
    double worst = 0;
    double squares = 0;
    for (const LinkId link : problem_->varying(option)) {
      const double load = (flows_[link] + 1) * problem_->inverse_capacity[link];
      worst = std::max(worst, load);
      squares += load * load;
    }
    if (worst < least_worst || (worst <= least_worst && squares < least_squares)) {
      best = option;
      least_worst = worst;
      least_squares = squares;
    }
  }
  return best;
}

double Placement::slowest_bps() const {
  double slowest = std::numeric_limits<double>::infinity();
  for (std::size_t link = 0; link < flows_.size(); ++link) {
    if (flows_[link] > 0) slowest = std::min(slowest, problem_->capacity_bps[link] / flows_[link]);
  }
  return slowest == std::numeric_limits<double>::infinity() ? 0 : slowest;
}

std::vector<PathIndex> Placement::paths() const {
  std::vector<PathIndex> paths = problem_->start_path;
  for (std::uint32_t unit = 0; unit < option_.size(); ++unit) {
    if (option_[unit] != kNoOption) paths[problem_->unit_flow[unit]] = problem_->options[option_[unit]].path;
  }
  return paths;
}

std::size_t Placement::moved() const {
  std::size_t moved = 0;
  for (std::uint32_t unit = 0; unit < option_.size(); ++unit) {
    if (option_[unit] != problem_->unit_origin[unit]) ++moved;
  }
  return moved;
}

}  // namespace te::traffic
