// SPDX-License-Identifier: Apache-2.0
#include "te-controller/traffic/imbalance.h"

#include <gtest/gtest.h>

namespace te::traffic {
namespace {

TEST(Imbalance, NothingIsNoTier) { EXPECT_TRUE(imbalance({}).empty()); }

TEST(Imbalance, AnEvenTierHasNoVariation) {
  const std::vector<LinkUse> links(4, {.tier = 3, .utilisation = 0.5, .flows = 2});
  const auto tiers = imbalance(links);
  ASSERT_EQ(tiers.size(), 1U);
  EXPECT_EQ(tiers[0].tier, 3U);
  EXPECT_EQ(tiers[0].links, 4U);
  EXPECT_DOUBLE_EQ(tiers[0].utilisation.mean, 0.5);
  EXPECT_DOUBLE_EQ(tiers[0].utilisation.variation, 0);
  EXPECT_DOUBLE_EQ(tiers[0].flows.variation, 0);
  EXPECT_EQ(tiers[0].fullest, 0U);
}

TEST(Imbalance, SpreadsAreOfLinksThatTakeFlows) {
  const std::vector<LinkUse> links{{.tier = 1, .utilisation = 0.9, .flows = 3},
                                   {.tier = 0, .utilisation = 0.2, .flows = 1},
                                   {.tier = 1, .utilisation = 0.3, .flows = 1},
                                   {.tier = 1, .takes_flows = false, .utilisation = 7, .flows = 7}};
  const auto tiers = imbalance(links);
  ASSERT_EQ(tiers.size(), 2U);
  const TierUse& upper = tiers[1];
  EXPECT_EQ(upper.links, 2U);
  EXPECT_EQ(upper.closed, 1U);
  EXPECT_EQ(upper.fullest, 0U);
  EXPECT_DOUBLE_EQ(upper.utilisation.least, 0.3);
  EXPECT_DOUBLE_EQ(upper.utilisation.most, 0.9);
  EXPECT_DOUBLE_EQ(upper.utilisation.mean, 0.6);
  EXPECT_NEAR(upper.utilisation.variation, 0.5, 1e-12);  // deviations of 0.3 from a mean of 0.6
  EXPECT_NEAR(upper.flows.variation, 0.5, 1e-12);
  EXPECT_EQ(tiers[0].fullest, 1U);
}

TEST(Imbalance, ATierWithoutOpenLinksSaysHowManyAreClosed) {
  const std::vector<LinkUse> links{{.tier = 0, .takes_flows = false}};
  const auto tiers = imbalance(links);
  ASSERT_EQ(tiers.size(), 1U);
  EXPECT_EQ(tiers[0].links, 0U);
  EXPECT_EQ(tiers[0].closed, 1U);
}

TEST(Imbalance, LostShare) {
  EXPECT_DOUBLE_EQ(lost_share(75, 100), 0.25);
  EXPECT_DOUBLE_EQ(lost_share(110, 100), 0);
  EXPECT_DOUBLE_EQ(lost_share(0, 0), 0);
}

}  // namespace
}  // namespace te::traffic
