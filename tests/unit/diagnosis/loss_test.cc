// SPDX-License-Identifier: Apache-2.0
#include "te-controller/diagnosis/loss.h"

#include <gtest/gtest.h>

#include <algorithm>

namespace te::diagnosis {
namespace {

FlowLoss clean(std::vector<LinkId> links) { return {.links = std::move(links), .packets = 5000, .gaps = 0}; }
FlowLoss losing(std::vector<LinkId> links, std::uint64_t gaps = 50) {
  return {.links = std::move(links), .packets = 5000, .gaps = gaps};
}

std::vector<LinkId> links_of(const std::vector<LossSuspect>& suspects) {
  std::vector<LinkId> links;
  for (const LossSuspect& one : suspects) links.push_back(one.link);
  std::ranges::sort(links);
  return links;
}

TEST(Loss, NobodyIsSuspectWithoutLosses) {
  EXPECT_TRUE(find_loss_suspects({clean({1, 2}), clean({3, 4})}, {}).empty());
}

TEST(Loss, NamesTheLinkThatAllLosingFlowsShareAndNoCleanOneCrosses) {
  const auto suspects =
      find_loss_suspects({losing({1, 5, 9}), losing({2, 5, 8}), clean({1, 6, 8}), clean({2, 7, 9})}, {});
  ASSERT_EQ(suspects.size(), 1U);
  EXPECT_EQ(suspects[0].link, 5U);
  EXPECT_EQ(suspects[0].candidates, 1U);
  EXPECT_EQ(suspects[0].flows, 2U);
  EXPECT_NEAR(suspects[0].loss, 0.0099, 0.0001);
}

TEST(Loss, NamesAllThatCannotBeToldApart) {
  const auto suspects = find_loss_suspects({losing({1, 5, 6, 9}), clean({1, 7}), clean({8, 9})}, {});
  EXPECT_EQ(links_of(suspects), (std::vector<LinkId>{5, 6}));
  EXPECT_EQ(suspects[0].candidates, 2U);
}

TEST(Loss, TwoPlacesAreNamedApart) {
  const auto suspects = find_loss_suspects({losing({1, 5}), losing({2, 6}), clean({1, 7}), clean({2, 7})}, {});
  EXPECT_EQ(links_of(suspects), (std::vector<LinkId>{5, 6}));
  for (const LossSuspect& one : suspects) EXPECT_EQ(one.candidates, 1U);
}

TEST(Loss, AFewGapsAreNoLoss) { EXPECT_TRUE(find_loss_suspects({losing({1, 5}, 4)}, {}).empty()); }

TEST(Loss, AFlowOfFewPacketsDoesNotExonerate) {
  FlowLoss few = clean({5});
  few.packets = 100;
  EXPECT_EQ(links_of(find_loss_suspects({losing({5}), few}, {})), std::vector<LinkId>{5});
}

TEST(Loss, ALossThatEveryLinkIsExoneratedOfHasNoSuspect) {
  EXPECT_TRUE(find_loss_suspects({losing({1, 5}), clean({1, 2}), clean({5})}, {}).empty());
}

}  // namespace
}  // namespace te::diagnosis
