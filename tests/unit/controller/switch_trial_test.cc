// SPDX-License-Identifier: Apache-2.0
#include "te-controller/engine/switch_trial.h"

#include <gtest/gtest.h>

#include <functional>

#include "tests/support/moments.h"
#include "topology/builder.h"

namespace te {
namespace {

/// Hands answers of leaf1 to the trials until nothing more is asked, as a switch of some manner would give them.
class Trials : public ::testing::Test {
 protected:
  using Choose = std::function<std::uint32_t(std::uint16_t port)>;  ///< which of four spines, from 0

  LinkId uplink(std::uint32_t spine) {
    const std::string name = "spine" + std::to_string(spine + 1);
    return fabric.port(*fabric.find_port(leaf1, name)).out;
  }
  void answer(std::uint16_t port, std::uint32_t spine) { trials.take(pair, port, uplink(spine), now); }
  void explore(const Choose& choose, std::uint16_t ports) {
    for (std::uint16_t i = 0; i < ports; ++i) answer(static_cast<std::uint16_t>(50000 + i), choose(50000 + i));
  }
  /// Answers all that is asked for `ns`; returns how many answers that took.
  int run(const Choose& choose, std::int64_t ns) {
    int answers = 0;
    for (const std::int64_t end = now + ns; now < end; now += 50 * kMs) {
      for (const auto& [of, port] : trials.wanted([](const AddressPair&) { return true; }, now)) {
        EXPECT_EQ(of, pair);
        answer(port, choose(port));
        ++answers;
      }
    }
    return answers;
  }
  static std::uint32_t by_port(std::uint16_t port) { return (port * 2654435761U >> 13U) % 4; }
  std::uint32_t at_random(std::uint16_t /*port*/) { return (random = random * 1664525 + 1013904223) >> 30U; }

  Fabric fabric = build_clos({});
  Routing routing{fabric};
  SwitchTrials trials{routing};
  const NodeId leaf1 = *fabric.find_node("leaf1");
  const PortId far = fabric.node(*fabric.find_node("h5")).ports.front();
  const PortId near = fabric.node(*fabric.find_node("h1")).ports.front();
  const AddressPair pair{fabric.port(near).addresses.front(), fabric.port(far).addresses.front(), 0};
  const std::vector<LinkId> way{fabric.port(near).out, fabric.port(*fabric.find_port(leaf1, "spine1")).out};
  std::uint32_t random = 1;
  std::int64_t now = kSecond;
};

TEST_F(Trials, ASwitchThatNobodySawIsNotTrusted) {
  EXPECT_EQ(trials.manner(leaf1), SwitchManner::kUnknown);
  EXPECT_EQ(trials.untrusted_on(way, far), leaf1);
}

TEST_F(Trials, TrustsASwitchThatRepeatsItself) {
  explore(by_port, 8);
  EXPECT_EQ(trials.untrusted_on(way, far), leaf1) << "nothing was repeated yet";
  EXPECT_LE(run(by_port, kSecond), 16);
  EXPECT_EQ(trials.manner(leaf1), SwitchManner::kByPort);
  EXPECT_EQ(trials.untrusted_on(way, far), kNoId);
  EXPECT_TRUE(trials.take_changed());
  EXPECT_FALSE(trials.take_changed());
}

TEST_F(Trials, TellsASwitchThatSpraysAndReviewsIt) {
  const auto spray = [&](std::uint16_t port) { return at_random(port); };
  explore(spray, 8);
  run(spray, 2 * kSecond);
  EXPECT_EQ(trials.manner(leaf1), SwitchManner::kVaries) << trials.evidence(leaf1);
  EXPECT_EQ(trials.untrusted_on(way, far), leaf1);
  run(spray, 3 * SwitchTrials::kReviewNs);
  EXPECT_EQ(trials.manner(leaf1), SwitchManner::kVaries) << trials.evidence(leaf1);
  run(by_port, SwitchTrials::kReviewNs + 2 * kSecond);
  EXPECT_EQ(trials.manner(leaf1), SwitchManner::kByPort) << trials.evidence(leaf1);
}

TEST_F(Trials, SprayIsNeverTakenForAChoiceByPort) {
  for (random = 1; random < 2000 * 977; random += 977) {
    trials = SwitchTrials(routing);
    const auto spray = [&](std::uint16_t port) { return at_random(port); };
    const std::uint32_t seed = random;
    explore(spray, 8);
    run(spray, kSecond);
    ASSERT_EQ(trials.manner(leaf1), SwitchManner::kVaries) << seed << trials.evidence(leaf1);
    random = seed;
  }
}

TEST_F(Trials, TellsASwitchThatIgnoresThePortAndReviewsIt) {
  const auto constant = [](std::uint16_t) { return 2U; };
  explore(constant, 12);
  EXPECT_EQ(trials.manner(leaf1), SwitchManner::kUnknown) << "chance may do that";
  explore(constant, 13);
  EXPECT_EQ(trials.manner(leaf1), SwitchManner::kIgnoresPort);
  EXPECT_NE(trials.evidence(leaf1).find("all 13 ports"), std::string::npos) << trials.evidence(leaf1);
  run(constant, 3 * SwitchTrials::kReviewNs);
  EXPECT_EQ(trials.manner(leaf1), SwitchManner::kIgnoresPort);
  run(by_port, SwitchTrials::kReviewNs + 2 * kSecond);
  EXPECT_EQ(trials.manner(leaf1), SwitchManner::kByPort) << trials.evidence(leaf1);
}

TEST_F(Trials, NoticesThatATrustedSwitchBeginsToSpray) {
  explore(by_port, 16);
  run(by_port, 2 * kSecond);
  ASSERT_EQ(trials.manner(leaf1), SwitchManner::kByPort);
  const auto spray = [&](std::uint16_t port) { return at_random(port); };
  run(spray, 30 * kSecond);
  EXPECT_EQ(trials.manner(leaf1), SwitchManner::kVaries) << trials.evidence(leaf1);
}

TEST_F(Trials, AChangedGroupIsNoVariation) {
  explore(by_port, 16);
  run(by_port, 2 * kSecond);
  ASSERT_EQ(trials.manner(leaf1), SwitchManner::kByPort);
  trials.begin_anew(leaf1);
  run([](std::uint16_t port) { return by_port(port + 1); }, 30 * kSecond);
  EXPECT_EQ(trials.manner(leaf1), SwitchManner::kByPort) << trials.evidence(leaf1);
}

TEST_F(Trials, ASwitchOfTheGroupThatNeverAnswersIsSilent) {
  const NodeId spine4 = *fabric.find_node("spine4");
  for (std::uint32_t spine = 0; spine < 3; ++spine) trials.heard(fabric.link(uplink(spine)).to);
  const auto three = [](std::uint16_t port) { return by_port(port) % 3; };
  explore(three, 16);
  run(three, SwitchTrials::kSilentNs / 2);
  EXPECT_NE(trials.manner(spine4), SwitchManner::kSilent);
  run(three, SwitchTrials::kSilentNs);
  EXPECT_EQ(trials.manner(spine4), SwitchManner::kSilent);
  trials.heard(spine4);
  EXPECT_NE(trials.manner(spine4), SwitchManner::kSilent);
}

TEST_F(Trials, EvidenceOfPairsThatAreGoneIsDropped) {
  explore(by_port, 16);
  EXPECT_TRUE(trials.wanted([](const AddressPair&) { return false; }, now).empty());
  EXPECT_TRUE(trials.wanted([](const AddressPair&) { return true; }, now + kSecond).empty());
}

}  // namespace
}  // namespace te
