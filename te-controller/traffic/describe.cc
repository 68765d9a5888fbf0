// SPDX-License-Identifier: Apache-2.0
#include "te-controller/traffic/describe.h"

#include <algorithm>
#include <string>
#include <utility>

#include "common/base/units.h"

namespace te::traffic {
namespace {

/// A prediction missed by more than this share is refuted.
constexpr double kMissed = 0.9;

std::string count(std::size_t number, const std::string& what) {
  return std::to_string(number) + " " + what + (number == 1 ? "" : "s");
}

/// The link of `links` that gives each flow least, with `more` flows added.
LinkId narrowest(const Problem& problem, const Placement& placement, std::span<const LinkId> links) {
  LinkId worst = kNoId;
  for (const LinkId link : links) {
    const auto load = [&](LinkId of) { return placement.flows(of) * problem.inverse_capacity[of]; };
    if (worst == kNoId || load(link) > load(worst)) worst = link;
  }
  return worst;
}

std::string load_text(const Fabric& fabric, const Problem& problem, const Placement& placement, LinkId link,
                      const char* verb) {
  const std::uint32_t flows = placement.flows(link);
  return fabric.link_name(link) + " " + verb + " " + count(flows, "flow") + " (" +
         format_rate_bps(problem.capacity_bps[link] / flows) + (flows == 1 ? ")" : " each)");
}

std::string reason(const Fabric& fabric, const Problem& problem, const Placement& before, const Placement& after,
                   std::uint32_t from, std::uint32_t to) {
  const LinkId left = narrowest(problem, before, problem.varying(from));
  const LinkId entered = narrowest(problem, after, problem.varying(to));
  if (left == kNoId || entered == kNoId) return "another way with the same links that count";
  const bool relieves =
      before.flows(left) * problem.inverse_capacity[left] > after.flows(entered) * problem.inverse_capacity[entered];
  return load_text(fabric, problem, before, left, "carries") + "; " +
         load_text(fabric, problem, after, entered, "will carry") +
         (relieves ? "" : "; makes room for other moves of this plan");
}

/// The first link of a path that takes no flows, and why.
std::string closed_link(const Fabric& fabric, std::span<const LinkId> links) {
  for (const LinkId link : links) {
    if (!takes_flows(fabric, {&link, 1})) {
      return fabric.link_name(link) + " is " + std::string(to_string(fabric.link(link).state));
    }
  }
  return "its path is closed";
}

}  // namespace

std::string why_it_leaves(const Fabric& fabric, const PlanInput& input, std::size_t flow) {
  const PathIndex path = input.flows[flow].current_path;
  if (path == kUnknownPath) return "what it sends does not arrive, and its way is not known";
  return closed_link(fabric, input.paths.links(path));
}

std::string switches(const Fabric& fabric, std::span<const LinkId> links) {
  std::string names;
  for (std::size_t i = 0; i + 1 < links.size(); ++i) {
    names += (i == 0 ? "" : ", ") + fabric.node(fabric.link(links[i]).to).name;
  }
  return names;
}

void describe_moves(const Fabric& fabric, const PlanInput& input, const Problem& problem, const Placement& now,
                    const Placement& goal, const std::vector<std::uint32_t>& order, Plan& plan) {
  Placement before = now;
  Placement after = now;
  std::size_t dead = 0;  // flows that get nothing until they are moved
  for (std::uint32_t unit = 0; unit < problem.units(); ++unit) {
    if (problem.start_path[problem.unit_flow[unit]] == kUnknownPath) ++dead;
  }
  for (const std::uint32_t unit : order) {
    const std::uint32_t from = before.option(unit);
    const std::uint32_t to = goal.option(unit);
    const std::size_t flow = problem.unit_flow[unit];
    after.put(unit, to);
    if (problem.start_path[flow] == kUnknownPath) --dead;
    PlannedMove move;
    move.flow = flow;
    move.from_path = input.flows[flow].current_path;
    move.from_port = input.flows[flow].current_port;
    move.to_path = problem.options[to].path;
    move.to_port = problem.options[to].port;
    move.forced = from == kNoOption;
    move.predicted_gain_bps = (dead > 0 ? 0 : after.slowest_bps()) - plan.slowest_now_bps;
    move.flow_before_bps = plan.rate_now_bps[flow];
    move.flow_after_bps = plan.rate_after_moves_bps[flow];
    move.reason = move.forced ? why_it_leaves(fabric, input, flow) : reason(fabric, problem, before, after, from, to);
    move.refuted_by = "a probe of port " + std::to_string(move.to_port) + " that goes otherwise than by " +
                      switches(fabric, input.paths.links(move.to_path)) + ", or the flow below " +
                      format_rate_bps(kMissed * move.flow_after_bps) + " while all flows are active";
    plan.moves.push_back(std::move(move));
    before.put(unit, to);
  }
}

void describe_outcome(const PlanInput& input, Plan& plan) {
  const auto held = [](const PlanFlow& flow) { return flow.elastic && !flow.immovable.empty(); };
  const auto immovable = static_cast<std::size_t>(std::count_if(input.flows.begin(), input.flows.end(), held));
  if (immovable > 0) {
    const auto first = std::find_if(input.flows.begin(), input.flows.end(), held);
    plan.notes.push_back(count(immovable, "elastic flow") + " may not be moved now; " + first->label + ": " +
                         first->immovable);
  }
  const std::size_t later = plan.moves_to_goal - plan.moves.size();
  if (plan.moves.empty() && later > 0) {
    plan.notes.push_back("no beginning of the plan's " + count(plan.moves_to_goal, "move") +
                         " is safe within the budget of " + std::to_string(input.limits.moves_per_cycle) + " a cycle");
  } else if (later > 0) {
    plan.notes.push_back(count(later, "more move") + " would follow in later cycles, up to " +
                         format_rate_bps(plan.slowest_goal_bps) + " for the slowest flow");
  } else if (plan.moves.empty() && plan.slowest_now_bps > 0) {
    plan.notes.push_back("nothing is worth moving: the slowest flow gets " + format_rate_bps(plan.slowest_now_bps) +
                         " of at best " + format_rate_bps(plan.slowest_bound_bps) + " on the paths with a known port");
  }
}

}  // namespace te::traffic
