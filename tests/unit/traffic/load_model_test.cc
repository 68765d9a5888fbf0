// SPDX-License-Identifier: Apache-2.0
#include "te-controller/traffic/load_model.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <vector>

#include "tests/support/planning_instance.h"
#include "topology/builder.h"

namespace te::traffic {
namespace {

std::vector<double> rates(const std::vector<double>& capacity, const std::vector<std::vector<LinkId>>& flows) {
  PathTable paths;
  std::vector<PathIndex> path_of;
  for (const auto& links : flows) path_of.push_back(paths.add(links));
  return max_min_rates(capacity, paths, path_of);
}

TEST(PathTable, GivesBackWhatWasAdded) {
  PathTable paths;
  paths.add(std::vector<LinkId>{1, 2});
  const PathIndex second = paths.add(std::vector<LinkId>{3});
  EXPECT_EQ(paths.size(), 2U);
  EXPECT_EQ(paths.links(second).size(), 1U);
  EXPECT_EQ(paths.links(second)[0], 3U);
}

TEST(MaxMin, OneFlowGetsItsNarrowestLink) { EXPECT_EQ(rates({10, 4}, {{0, 1}}), (std::vector<double>{4})); }

TEST(MaxMin, FlowsShareALinkEvenly) { EXPECT_EQ(rates({9}, {{0}, {0}, {0}}), (std::vector<double>{3, 3, 3})); }

TEST(MaxMin, AFlowHeldUpElsewhereLeavesItsShare) {
  EXPECT_EQ(rates({10, 2}, {{0, 1}, {0}}), (std::vector<double>{2, 8}));
}

TEST(MaxMin, FillsLevelByLevel) {
  const auto found = rates({1, 1, 1}, {{0}, {0, 1}, {1, 2}, {0}, {2}});
  EXPECT_NEAR(found[0], 1.0 / 3, 1e-12);
  EXPECT_NEAR(found[1], 1.0 / 3, 1e-12);
  EXPECT_NEAR(found[2], 0.5, 1e-12);
  EXPECT_NEAR(found[4], 0.5, 1e-12);
}

TEST(MaxMin, AnUnknownPathLoadsNothing) {
  PathTable paths;
  const std::vector<PathIndex> path_of{paths.add(std::vector<LinkId>{0}), kUnknownPath};
  EXPECT_EQ(max_min_rates(std::vector<double>{5}, paths, path_of), (std::vector<double>{5, 0}));
}

TEST(MaxMin, AFlowOverADownLinkGetsNothingAndLeavesTheRest) {
  EXPECT_EQ(rates({0, 8}, {{0, 1}, {1}}), (std::vector<double>{0, 8}));
}

/// No link is over its capacity, and each flow has a full link on which nobody gets more: the definition of max-min
/// fairness.
TEST(MaxMin, HoldsTheDefinitionOnRandomInstances) {
  TestRandom random(11);
  const Fabric fabric = build_clos({.leaves = 4, .hosts_per_leaf = 6, .spines = 3});
  for (int round = 0; round < 200; ++round) {
    Instance instance(fabric, random_pairs(24, 1 + random.below(60), random), random);
    std::vector<double> capacity = elastic_capacity(fabric, {});
    for (double& bps : capacity) bps *= 1 + random.below(4);
    std::vector<PathIndex> path_of;
    for (const PlanFlow& flow : instance.input.flows) path_of.push_back(flow.current_path);
    const auto rate = max_min_rates(capacity, instance.input.paths, path_of);
    std::vector<double> load(capacity.size());
    std::vector<double> most(capacity.size());
    for (std::size_t flow = 0; flow < rate.size(); ++flow) {
      for (const LinkId link : instance.input.paths.links(path_of[flow])) {
        load[link] += rate[flow];
        most[link] = std::max(most[link], rate[flow]);
      }
    }
    for (std::size_t link = 0; link < load.size(); ++link) ASSERT_LE(load[link], capacity[link] * (1 + 1e-9));
    for (std::size_t flow = 0; flow < rate.size(); ++flow) {
      const auto links = instance.input.paths.links(path_of[flow]);
      ASSERT_TRUE(std::any_of(links.begin(), links.end(), [&](LinkId link) {
        return load[link] >= capacity[link] * (1 - 1e-9) && rate[flow] >= most[link] * (1 - 1e-9);
      }));
    }
  }
}

TEST(ElasticCapacity, IsWhatTheBackgroundLeaves) {
  const Fabric fabric = build_clos({.host_bps = 100, .uplink_bps = 100});
  std::vector<double> background(fabric.links().size());
  background[3] = 30;
  EXPECT_EQ(elastic_capacity(fabric, background)[3], 70);
  EXPECT_EQ(elastic_capacity(fabric, background)[2], 100);
}

TEST(ElasticCapacity, OfAFullLinkIsSmallButNotNothing) {
  const Fabric fabric = build_clos({.host_bps = 100, .uplink_bps = 100});
  const std::vector<double> background(fabric.links().size(), 500);
  EXPECT_GT(elastic_capacity(fabric, background)[0], 0);
}

TEST(ElasticCapacity, OfADownLinkIsNothing) {
  Fabric fabric = build_clos({});
  fabric.set_link_state(5, LinkState::kDown);
  EXPECT_EQ(elastic_capacity(fabric, {})[5], 0);
}

TEST(CompareSlowestFirst, LooksAtTheSlowestFirst) {
  EXPECT_LT(compare_slowest_first(std::vector<double>{1, 100}, std::vector<double>{2, 3}, 0), 0);
}

TEST(CompareSlowestFirst, LooksAtTheNextWhereTheSlowestIsTheSame) {
  EXPECT_GT(compare_slowest_first(std::vector<double>{5, 1}, std::vector<double>{1, 4}, 0), 0);
}

TEST(CompareSlowestFirst, TakesSmallDifferencesForNone) {
  EXPECT_EQ(compare_slowest_first(std::vector<double>{1.00, 2}, std::vector<double>{1.01, 2}, 0.02), 0);
}

}  // namespace
}  // namespace te::traffic
