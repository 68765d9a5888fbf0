// SPDX-License-Identifier: Apache-2.0
// How good plans are: against every placement on tiny instances, against the pigeonhole bound on larger ones.
#include <gtest/gtest.h>

#include <algorithm>
#include <iostream>
#include <vector>

#include "te-controller/traffic/planner.h"
#include "tests/support/planning_instance.h"
#include "tests/support/repeats.h"
#include "topology/builder.h"

namespace te::traffic {
namespace {

Fabric random_clos(TestRandom& random, std::uint32_t most_leaves, std::uint32_t most_hosts, std::uint32_t most_spines) {
  ClosSpec spec;
  spec.leaves = 2 + random.below(most_leaves - 1);
  spec.hosts_per_leaf = 1 + random.below(most_hosts);
  spec.spines = 2 + random.below(most_spines - 1);
  spec.host_bps = 100e9;
  spec.uplink_bps = random.below(2) == 0 ? 100e9 : 200e9;
  return build_clos(spec);
}

std::uint32_t hosts_of(const Fabric& fabric) {
  return static_cast<std::uint32_t>(
      std::count_if(fabric.nodes().begin(), fabric.nodes().end(), [](const Node& node) { return node.is_host(); }));
}

/// Rates of the best of all placements, slowest first.
std::vector<double> best_of_all(const Fabric& fabric, const PlanInput& input) {
  const auto capacity = elastic_capacity(fabric, {});
  std::vector<std::uint32_t> choice(input.flows.size(), 0);
  std::vector<PathIndex> path_of(input.flows.size());
  std::vector<double> best;
  while (true) {
    for (std::size_t flow = 0; flow < choice.size(); ++flow) {
      path_of[flow] = input.candidates[input.flows[flow].first_candidate + choice[flow]].path;
    }
    auto rates = max_min_rates(capacity, input.paths, path_of);
    if (best.empty() || compare_slowest_first(rates, best, 1e-9) > 0) best = std::move(rates);
    std::size_t digit = 0;
    while (digit < choice.size() && ++choice[digit] == input.flows[digit].candidate_count) choice[digit++] = 0;
    if (digit == choice.size()) return best;
  }
}

double slowest(const std::vector<double>& rates) { return *std::min_element(rates.begin(), rates.end()); }

TEST(PlannerQuality, TheSlowestFlowIsOptimalOnTinyInstances) {
  std::size_t optimal = 0;
  std::size_t whole_vector = 0;
  constexpr std::size_t kRounds = testing::repeats(300);
  for (std::uint64_t seed = 1; seed <= kRounds; ++seed) {
    TestRandom random(seed);
    const Fabric fabric = random_clos(random, 3, 3, 3);
    Instance instance(fabric, random_pairs(hosts_of(fabric), 3 + random.below(5), random), random);
    instance.input.limits.hysteresis = 0.001;
    instance.input.limits.tolerance = 0.001;
    const auto best = best_of_all(fabric, instance.input);
    const Plan found = plan(fabric, instance.input);
    ASSERT_LE(found.slowest_goal_bps, found.slowest_bound_bps * (1 + 1e-9)) << "seed " << seed;
    ASSERT_GE(found.slowest_bound_bps, slowest(best) * (1 - 1e-9)) << "seed " << seed;
    if (found.slowest_goal_bps >= slowest(best) * (1 - 1e-9)) ++optimal;
    if (compare_slowest_first(found.rate_goal_bps, best, 0.002) >= 0) ++whole_vector;
  }
  std::cout << "slowest optimal " << optimal << ", all rates optimal " << whole_vector << " of " << kRounds << "\n";
  EXPECT_EQ(optimal, kRounds);
  EXPECT_GE(whole_vector, kRounds * 95 / 100);
}

TEST(PlannerQuality, UnevenLinksAreOptimalOnTinyInstances) {
  std::size_t optimal = 0;
  constexpr std::size_t kRounds = testing::repeats(200);
  for (std::uint64_t seed = 1; seed <= kRounds; ++seed) {
    TestRandom random(seed + 7000);
    Fabric fabric = random_clos(random, 2, 4, 3);
    Instance instance(fabric, random_pairs(hosts_of(fabric), 3 + random.below(5), random), random);
    instance.input.limits.hysteresis = instance.input.limits.tolerance = 0.001;
    for (LinkId link = 0; link < fabric.links().size(); ++link) {
      instance.input.background_bps.push_back(random.below(3) * 0.25 * fabric.link(link).capacity_bps);
    }
    const auto capacity = elastic_capacity(fabric, instance.input.background_bps);
    const Plan found = plan(fabric, instance.input);
    // Every placement, with the capacity that the background leaves.
    double best = 0;
    std::vector<std::uint32_t> choice(instance.input.flows.size(), 0);
    for (bool more = true; more;) {
      std::vector<PathIndex> path_of;
      for (std::size_t flow = 0; flow < choice.size(); ++flow) {
        path_of.push_back(instance.input.candidates[instance.input.flows[flow].first_candidate + choice[flow]].path);
      }
      best = std::max(best, slowest(max_min_rates(capacity, instance.input.paths, path_of)));
      std::size_t digit = 0;
      while (digit < choice.size() && ++choice[digit] == instance.input.flows[digit].candidate_count)
        choice[digit++] = 0;
      more = digit < choice.size();
    }
    if (found.slowest_goal_bps >= best * (1 - 0.002)) ++optimal;
  }
  std::cout << "optimal " << optimal << " of " << kRounds << "\n";
  EXPECT_GE(optimal, kRounds * 97 / 100);
}

TEST(PlannerQuality, MeetsThePigeonholeBoundOnNearlyAllRandomClosInstances) {
  std::vector<double> ratios;
  for (std::uint64_t seed = 1; seed <= testing::repeats(150); ++seed) {
    TestRandom random(seed + 100);
    const Fabric fabric = random_clos(random, 6, 8, 8);
    const Instance instance(fabric, random_pairs(hosts_of(fabric), 10 + random.below(120), random), random);
    const Plan found = plan(fabric, instance.input);
    ASSERT_GE(found.slowest_goal_bps, found.slowest_now_bps * (1 - instance.input.limits.tolerance));
    ratios.push_back(found.slowest_goal_bps / found.slowest_bound_bps);
  }
  std::sort(ratios.begin(), ratios.end());
  const auto met = std::count_if(ratios.begin(), ratios.end(), [](double ratio) { return ratio > 0.999; });
  std::cout << "bound met " << met << " of " << ratios.size() << ", worst " << ratios.front() << "\n";
  EXPECT_GE(met, static_cast<std::ptrdiff_t>(ratios.size() * 95 / 100));
  EXPECT_GE(ratios.front(), 0.5);
}

TEST(PlannerQuality, IsNeverWorseThanWhatIsThere) {
  for (std::uint64_t seed = 1; seed <= testing::repeats(200); ++seed) {
    TestRandom random(seed + 900);
    const Fabric fabric = random_clos(random, 5, 6, 5);
    Instance instance(fabric, random_pairs(hosts_of(fabric), 5 + random.below(60), random), random);
    instance.input.limits.moves_per_cycle = 1 + random.below(10);
    const Plan found = plan(fabric, instance.input);
    const double tolerance = instance.input.limits.tolerance;
    ASSERT_GE(compare_slowest_first(found.rate_goal_bps, found.rate_now_bps, tolerance), 0) << "seed " << seed;
    ASSERT_GE(compare_slowest_first(found.rate_after_moves_bps, found.rate_now_bps, tolerance), 0) << "seed " << seed;
    ASSERT_LE(found.moves.size(), instance.input.limits.moves_per_cycle);
  }
}

/// Links looked at for a ring of 16 flows: where the bound can be met, and at most.
constexpr std::int64_t kWorkToTheBound = 1'000;
constexpr std::int64_t kWorkOfARing = 100'000;

TEST(PlannerQuality, OneSlowCableCostsLittleWork) {
  const Fabric fabric = build_clos({.leaves = 2, .hosts_per_leaf = 4, .spines = 4, .host_bps = 1e9});
  for (std::uint64_t seed = 1; seed <= testing::repeats(20); ++seed) {
    TestRandom random(seed);
    Instance instance(fabric, alternating_ring(4, 2), random);
    instance.narrow(fabric, "leaf1", "spine1", 0.5);
    const Plan found = plan(fabric, instance.input);
    EXPECT_GE(found.slowest_goal_bps, found.slowest_bound_bps * (1 - 1e-9)) << "seed " << seed;
    EXPECT_LE(found.balance_work, kWorkToTheBound) << "seed " << seed;
  }
}

TEST(PlannerQuality, LinksThatAllDifferCostLittleWork) {
  const Fabric fabric = build_clos({.leaves = 2, .hosts_per_leaf = 4, .spines = 4});
  for (std::uint64_t seed = 1; seed <= testing::repeats(50); ++seed) {
    TestRandom random(seed);
    Instance instance(fabric, alternating_ring(4, 2), random);
    for (const Link& link : fabric.links())
      instance.input.background_bps.push_back(random.below(60) / 100.0 * link.capacity_bps);
    const Plan found = plan(fabric, instance.input);
    EXPECT_GT(found.balance_work, 0) << "seed " << seed;
    EXPECT_LE(found.balance_work, kWorkOfARing) << "seed " << seed;
  }
}

TEST(PlannerQuality, APermutationAtFullLoadIsPlacedPerfectly) {
  const Fabric fabric = build_clos({.leaves = 8, .hosts_per_leaf = 8, .spines = 8});
  for (std::uint64_t seed = 1; seed <= testing::repeats(20); ++seed) {
    TestRandom random(seed);
    std::vector<std::pair<std::uint32_t, std::uint32_t>> ends;
    for (std::uint32_t host = 0; host < 64; ++host)
      ends.emplace_back(host + 1, (host + 8 * (1 + random.below(7))) % 64 + 1);
    const Instance instance(fabric, ends, random);
    const Plan found = plan(fabric, instance.input);
    EXPECT_GE(found.slowest_goal_bps, found.slowest_bound_bps * (1 - 1e-9)) << "seed " << seed;
  }
}

}  // namespace
}  // namespace te::traffic
