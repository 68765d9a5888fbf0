// SPDX-License-Identifier: Apache-2.0
#include "te-controller/traffic/planner.h"

#include <algorithm>
#include <limits>
#include <utility>

#include "te-controller/traffic/background.h"
#include "te-controller/traffic/describe.h"
#include "te-controller/traffic/placement.h"
#include "te-controller/traffic/search.h"
#include "te-controller/traffic/sequence.h"

namespace te::traffic {
namespace {

class Planner {
 public:
  Planner(const Fabric& fabric, const PlanInput& input)
      : fabric_(fabric), input_(input), problem_(compile(fabric, input)), now_(problem_) {}

  Plan run() {
    plan_.notes = problem_.notes;
    plan_.unknown_path_flows = problem_.unknown_path_flows;
    plan_.rate_now_bps = max_min_rates(problem_.capacity_bps, input_.paths, problem_.start_path);
    const Bounds bounds = pigeonhole_bounds(fabric_, problem_);
    plan_.slowest_bound_bps = bounds.overall > 0 ? 1 / bounds.overall : 0;
    const Placement forced = leave_closed_links();
    const Placement goal = choose_goal(bounds, forced);
    plan_.moves_to_goal = goal.moved();
    plan_.rate_goal_bps = rates(goal);
    const auto order = choose_beginning(goal);
    plan_.slowest_now_bps = slowest(plan_.rate_now_bps);
    plan_.slowest_after_moves_bps = slowest(plan_.rate_after_moves_bps);
    plan_.slowest_goal_bps = slowest(plan_.rate_goal_bps);
    plan_.moves = background_off_closed_links(fabric_, input_);
    plan_.moves_to_goal += plan_.moves.size();
    describe_moves(fabric_, input_, problem_, now_, goal, order, plan_);
    describe_outcome(input_, plan_);
    return std::move(plan_);
  }

 private:
  [[nodiscard]] std::vector<double> rates(const Placement& placement) const {
    return max_min_rates(problem_.capacity_bps, input_.paths, placement.paths());
  }

  /// Of elastic flows with a known path.
  [[nodiscard]] double slowest(const std::vector<double>& rate_bps) const {
    double least = std::numeric_limits<double>::infinity();
    for (std::size_t flow = 0; flow < rate_bps.size(); ++flow) {
      const PlanFlow& of = input_.flows[flow];
      if (of.elastic && of.current_path != kUnknownPath) least = std::min(least, rate_bps[flow]);
    }
    return least == std::numeric_limits<double>::infinity() ? 0 : least;
  }

  [[nodiscard]] bool same(const Placement& a, const Placement& b) const {
    for (std::uint32_t unit = 0; unit < problem_.units(); ++unit) {
      if (a.option(unit) != b.option(unit)) return false;
    }
    return true;
  }

  [[nodiscard]] Placement leave_closed_links() const {
    Placement placement = now_;
    for (std::uint32_t unit = 0; unit < problem_.units(); ++unit) {
      if (placement.option(unit) == kNoOption) placement.put(unit, placement.least_loaded_option(unit));
    }
    return placement;
  }

  /// The best placement found, or only what must be where the rest is not worth it.
  [[nodiscard]] Placement choose_goal(const Bounds& bounds, const Placement& forced) {
    const PlanLimits& limits = input_.limits;
    Placement goal = balance(problem_, bounds, forced, limits.tolerance, plan_.balance_work);
    goal = polish(input_, problem_, goal, std::max(limits.hysteresis, limits.tolerance));
    goal = prune(input_, problem_, bounds, goal, limits.tolerance);
    if (same(goal, forced)) return forced;
    const auto without = rates(forced);
    const auto with = rates(goal);
    const bool worth = compare_slowest_first(with, without, std::max(limits.hysteresis, limits.tolerance)) > 0 &&
                       compare_slowest_first(with, without, limits.tolerance) >= 0;
    return worth ? goal : forced;
  }

  /// As many moves as the budget allows and as leave nobody worse off on the way. Sets rate_after_moves_bps.
  std::vector<std::uint32_t> choose_beginning(const Placement& goal) {
    auto order = sequence(problem_, now_, goal, input_.limits.moves_per_cycle);
    if (order.size() == plan_.moves_to_goal) {
      plan_.rate_after_moves_bps = plan_.rate_goal_bps;
      return order;
    }
    Placement placement = now_;
    std::size_t forced = 0;
    for (; forced < order.size() && now_.option(order[forced]) == kNoOption; ++forced) {
      placement.put(order[forced], goal.option(order[forced]));
    }
    const std::vector<double> base_bps = rates(placement);
    for (std::size_t i = forced; i < order.size(); ++i) placement.put(order[i], goal.option(order[i]));
    plan_.rate_after_moves_bps = rates(placement);
    while (order.size() > forced &&
           compare_slowest_first(plan_.rate_after_moves_bps, base_bps, input_.limits.tolerance) < 0) {
      placement.put(order.back(), problem_.unit_origin[order.back()]);
      order.pop_back();
      plan_.rate_after_moves_bps = rates(placement);
    }
    return order;
  }

  const Fabric& fabric_;
  const PlanInput& input_;
  Problem problem_;
  Placement now_;
  Plan plan_;
};

}  // namespace

std::size_t PlanInput::add_flow(PlanFlow flow, std::span<const Candidate> its_candidates) {
  flow.first_candidate = static_cast<std::uint32_t>(candidates.size());
  flow.candidate_count = static_cast<std::uint32_t>(its_candidates.size());
  candidates.insert(candidates.end(), its_candidates.begin(), its_candidates.end());
  flows.push_back(std::move(flow));
  return flows.size() - 1;
}

Plan plan(const Fabric& fabric, const PlanInput& input) { return Planner(fabric, input).run(); }

}  // namespace te::traffic
