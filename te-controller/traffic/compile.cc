// SPDX-License-Identifier: Apache-2.0
// From PlanInput to Problem: which flows may be moved where, and what loads stay in any case.
#include <algorithm>
#include <limits>
#include <utility>

#include "te-controller/traffic/placement.h"

namespace te::traffic {
namespace {

constexpr std::size_t kMostNotes = 20;

class Compiler {
 public:
  Compiler(const Fabric& fabric, const PlanInput& input) : fabric_(fabric), input_(input) {}

  Problem run() {
    problem_.flow_count = input_.flows.size();
    problem_.capacity_bps = elastic_capacity(fabric_, background());
    problem_.inverse_capacity.resize(problem_.capacity_bps.size());
    for (std::size_t link = 0; link < problem_.capacity_bps.size(); ++link) {
      const double capacity = problem_.capacity_bps[link];
      problem_.inverse_capacity[link] = capacity > 0 ? 1 / capacity : 0;
    }
    problem_.start_path.assign(input_.flows.size(), kUnknownPath);
    problem_.unit_option_begin.push_back(0);
    problem_.option_link_begin.push_back(0);
    judge_paths();
    for (std::size_t flow = 0; flow < input_.flows.size(); ++flow) {
      if (input_.flows[flow].elastic) add_flow(flow);
    }
    weigh_fixed_links();
    summarise();
    return std::move(problem_);
  }

 private:
  [[nodiscard]] std::vector<double> background() const {
    std::vector<double> load = input_.background_bps;
    load.resize(fabric_.links().size());
    for (const PlanFlow& flow : input_.flows) {
      if (flow.elastic || flow.current_path == kUnknownPath) continue;
      for (const LinkId link : input_.paths.links(flow.current_path)) load[link] += flow.measured_bps;
    }
    return load;
  }

  void judge_paths() {
    usable_.resize(input_.paths.size());
    for (PathIndex path = 0; path < usable_.size(); ++path)
      usable_[path] = takes_flows(fabric_, input_.paths.links(path)) ? 1 : 0;
  }

  [[nodiscard]] bool live(PathIndex path) const {
    const auto links = input_.paths.links(path);
    return std::all_of(links.begin(), links.end(), [&](LinkId link) { return problem_.capacity_bps[link] > 0; });
  }

  [[nodiscard]] bool same_links(PathIndex a, PathIndex b) const {
    const auto x = input_.paths.links(a);
    const auto y = input_.paths.links(b);
    return a == b || std::equal(x.begin(), x.end(), y.begin(), y.end());
  }

  void add_flow(std::size_t index) {
    const PlanFlow& flow = input_.flows[index];
    const bool known = flow.current_path != kUnknownPath;
    if (!known && !flow.must_leave) {
      ++problem_.unknown_path_flows;
      return;
    }
    const bool stays_usable = known && usable_[flow.current_path] != 0;
    if (known && live(flow.current_path)) problem_.start_path[index] = flow.current_path;
    options_.clear();
    if (stays_usable) options_.push_back({flow.current_path, flow.current_port});
    if (flow.immovable.empty()) {
      for (std::uint32_t i = 0; i < flow.candidate_count; ++i) {
        const Candidate& candidate = input_.candidates[flow.first_candidate + i];
        if (usable_[candidate.path] != 0 && !(known && same_links(candidate.path, flow.current_path)))
          options_.push_back(candidate);
      }
    }
    if (options_.size() > (stays_usable ? 1U : 0U)) {
      add_unit(index, stays_usable);
      return;
    }
    if (!stays_usable) {
      note(flow.label + (known ? " is on a link that is down or drained" : " does not arrive") +
           " and stays: " + (flow.immovable.empty() ? "no port is known that leads another way" : flow.immovable));
    }
    if (known && live(flow.current_path)) add_fixed(index, input_.paths.links(flow.current_path));
  }

  void add_unit(std::size_t index, bool stays_usable) {
    const auto first = static_cast<std::uint32_t>(problem_.options.size());
    const auto links = input_.paths.links(options_.front().path);
    shared_.assign(links.size(), true);
    for (const Candidate& option : options_) {
      const auto others = input_.paths.links(option.path);
      for (std::size_t i = 0; i < links.size(); ++i) {
        if (others.size() != links.size() || others[i] != links[i]) shared_[i] = false;
      }
    }
    fixed_links_.clear();
    for (std::size_t i = 0; i < links.size(); ++i) {
      if (shared_[i]) fixed_links_.push_back(links[i]);
    }
    for (const Candidate& option : options_) {
      const auto all = input_.paths.links(option.path);
      for (std::size_t i = 0; i < all.size(); ++i) {
        if (i >= shared_.size() || !shared_[i]) problem_.option_links.push_back(all[i]);
      }
      problem_.options.push_back(option);
      problem_.option_link_begin.push_back(static_cast<std::uint32_t>(problem_.option_links.size()));
    }
    problem_.unit_flow.push_back(static_cast<std::uint32_t>(index));
    problem_.unit_origin.push_back(stays_usable ? first : kNoOption);
    problem_.unit_option_begin.push_back(static_cast<std::uint32_t>(problem_.options.size()));
    add_fixed(index, fixed_links_);
  }

  void add_fixed(std::size_t index, std::span<const LinkId> links) {
    fixed_of_.resize(index, kUnknownPath);
    fixed_of_.push_back(links.empty() ? kUnknownPath : fixed_paths_.add(links));
  }

  /// What each flow can get at most decides which links can become narrow at all.
  void weigh_fixed_links() {
    const std::size_t links = problem_.capacity_bps.size();
    fixed_of_.resize(input_.flows.size(), kUnknownPath);
    const auto demand = max_min_rates(problem_.capacity_bps, fixed_paths_, fixed_of_);
    problem_.fixed_flows.assign(links, 0);
    problem_.fixed_demand_bps.assign(links, 0);
    for (std::size_t flow = 0; flow < fixed_of_.size(); ++flow) {
      if (fixed_of_[flow] == kUnknownPath) continue;
      for (const LinkId link : fixed_paths_.links(fixed_of_[flow])) {
        ++problem_.fixed_flows[link];
        problem_.fixed_demand_bps[link] += demand[flow];
      }
    }
    for (const std::uint32_t flow : problem_.unit_flow) {
      const bool unlimited = fixed_of_[flow] == kUnknownPath;
      problem_.unit_demand_bps.push_back(unlimited ? std::numeric_limits<float>::max() : demand[flow]);
    }
  }

  void note(std::string text) {
    if (problem_.notes.size() < kMostNotes) problem_.notes.push_back(std::move(text));
    ++notes_;
  }

  void summarise() {
    if (notes_ > kMostNotes) problem_.notes.push_back("and " + std::to_string(notes_ - kMostNotes) + " more of these");
    if (problem_.unknown_path_flows > 0) {
      problem_.notes.push_back(std::to_string(problem_.unknown_path_flows) +
                               " elastic flows have an unknown path and count for nothing in the loads");
    }
  }

  const Fabric& fabric_;
  const PlanInput& input_;
  Problem problem_;
  std::vector<char> usable_;
  std::vector<Candidate> options_;
  std::vector<char> shared_;
  std::vector<LinkId> fixed_links_;
  PathTable fixed_paths_;
  std::vector<PathIndex> fixed_of_;
  std::size_t notes_ = 0;
};

}  // namespace

bool takes_flows(const Fabric& fabric, std::span<const LinkId> links) {
  return std::none_of(links.begin(), links.end(), [&](LinkId link) {
    const LinkState state = fabric.link(link).state;
    return state == LinkState::kDown || state == LinkState::kDrained;
  });
}

Problem compile(const Fabric& fabric, const PlanInput& input) { return Compiler(fabric, input).run(); }

}  // namespace te::traffic
