// SPDX-License-Identifier: Apache-2.0
#include "te-controller/diagnosis/link_health.h"

#include <gtest/gtest.h>

#include "tests/support/moments.h"
#include "topology/builder.h"

namespace te::diagnosis {
namespace {

class Health : public ::testing::Test {
 protected:
  LinkId link(const std::string& from, const std::string& port) {
    return fabric.port(*fabric.find_port(*fabric.find_node(from), port)).out;
  }
  PortId port(const std::string& node, const std::string& name) {
    return *fabric.find_port(*fabric.find_node(node), name);
  }
  LinkCondition condition(LinkId of) const { return health.status(of).condition; }
  std::vector<LinkId> judge_after(std::int64_t ns) {
    now += ns;
    return health.judge(now);
  }

  Fabric fabric = build_clos({});
  LinkHealth health{fabric};
  std::int64_t now = kSecond;
  const LinkId up = link("leaf1", "spine1");
  const LinkId down = fabric.link(up).reverse;
};

TEST_F(Health, NobodyHasSaidAnythingAtFirst) {
  EXPECT_TRUE(judge_after(0).empty());
  EXPECT_EQ(condition(up), LinkCondition::kUnknown);
}

TEST_F(Health, APortWithoutCarrierTakesBothDirectionsDownAtOnce) {
  health.carrier(port("leaf1", "spine1"), true);
  judge_after(0);
  EXPECT_EQ(condition(up), LinkCondition::kHealthy);
  health.carrier(port("leaf1", "spine1"), false);
  EXPECT_EQ(judge_after(0).size(), 2U);
  EXPECT_EQ(condition(up), LinkCondition::kDown);
  EXPECT_EQ(condition(down), LinkCondition::kDown);
  EXPECT_EQ(health.status(up).since_ns, now);
  EXPECT_EQ(health.status(up).evidence, "no carrier at leaf1:spine1");
  EXPECT_FALSE(health.needs_proof(up));
}

TEST_F(Health, TheWordOfEitherEndIsEnoughAndBothMustTakeItBack) {
  health.carrier(port("leaf1", "spine1"), true);
  health.carrier(port("spine1", "leaf1"), false);
  judge_after(0);
  EXPECT_EQ(condition(up), LinkCondition::kDown);
  health.carrier(port("leaf1", "spine1"), false);
  health.carrier(port("spine1", "leaf1"), true);
  judge_after(10 * kSecond);
  EXPECT_EQ(condition(up), LinkCondition::kDown);
  health.carrier(port("leaf1", "spine1"), true);
  judge_after(kSecond);
  judge_after(LinkHealth::kHoldNs);
  EXPECT_EQ(condition(up), LinkCondition::kHealthy);
}

TEST_F(Health, ALinkIsTrustedAgainAfterAWhile) {
  health.carrier(port("leaf1", "spine1"), false);
  judge_after(0);
  health.carrier(port("leaf1", "spine1"), true);
  judge_after(kSecond);
  EXPECT_EQ(condition(up), LinkCondition::kDown);
  judge_after(LinkHealth::kHoldNs - 1);
  EXPECT_EQ(condition(up), LinkCondition::kDown);
  judge_after(1);
  EXPECT_EQ(condition(up), LinkCondition::kHealthy);
}

TEST_F(Health, ALinkThatFallsAgainAndAgainIsFlapping) {
  for (std::uint32_t fall = 0; fall < LinkHealth::kFlaps; ++fall) {
    health.carrier(port("leaf1", "spine1"), false);
    judge_after(kSecond);
    health.carrier(port("leaf1", "spine1"), true);
    judge_after(kSecond);
    judge_after(kSecond);
  }
  EXPECT_EQ(condition(up), LinkCondition::kFlapping);
  judge_after(LinkHealth::kFlapWindowNs);
  EXPECT_EQ(condition(up), LinkCondition::kHealthy);
}

TEST_F(Health, OneSilentProbeIsNoVerdict) {
  health.silent(up, 1, now);
  judge_after(0);
  EXPECT_EQ(condition(up), LinkCondition::kUnknown);
  health.silent(up, 1, now + LinkHealth::kSilenceWindowNs + 1);
  judge_after(LinkHealth::kSilenceWindowNs + 1);
  EXPECT_EQ(condition(up), LinkCondition::kUnknown) << "too far apart";
}

TEST_F(Health, SilenceTakesTheCableDown) {
  health.silent(up, 2, now);
  judge_after(0);
  EXPECT_EQ(condition(up), LinkCondition::kDown);
  EXPECT_EQ(condition(down), LinkCondition::kDown);
  EXPECT_EQ(health.status(up).evidence, "2 probes got as far as leaf1 and not to spine1");
  EXPECT_TRUE(health.needs_proof(up));
}

TEST_F(Health, WhatComesThroughMeanwhileSpeaksAgainstSilence) {
  health.silent(up, 1, now);
  health.passed(up, now + 1);
  health.silent(up, 1, now + 2);
  judge_after(3);
  EXPECT_NE(condition(up), LinkCondition::kDown);
}

TEST_F(Health, TheOtherDirectionStaysUpWhenItsPortOrAProbeSpeaksForIt) {
  health.silent(up, 2, now);
  health.proved(down, now + 1);
  judge_after(2);
  EXPECT_EQ(condition(up), LinkCondition::kDown);
  EXPECT_EQ(condition(down), LinkCondition::kHealthy);
}

TEST_F(Health, OnlyProofBringsASilentLinkBack) {
  health.silent(up, 2, now);
  judge_after(0);
  health.passed(up, now);
  judge_after(kSecond);
  judge_after(kSecond);
  EXPECT_EQ(condition(up), LinkCondition::kDown) << "the way of a flow may have changed";
  health.proved(up, now);
  judge_after(kSecond);
  judge_after(LinkHealth::kHoldNs);
  EXPECT_EQ(condition(up), LinkCondition::kHealthy);
  EXPECT_NE(condition(down), LinkCondition::kDown);
}

TEST_F(Health, ALinkThatWasDownWhenItsSwitchFellSilentNeedsProof) {
  health.carrier(port("leaf1", "spine1"), false);
  judge_after(0);
  health.no_word(port("leaf1", "spine1"), now);
  judge_after(10 * kSecond);
  EXPECT_EQ(condition(up), LinkCondition::kDown);
  EXPECT_TRUE(health.needs_proof(up));
  health.proved(up, now);
  judge_after(kSecond);
  judge_after(kSecond);
  EXPECT_EQ(condition(up), LinkCondition::kHealthy);
}

TEST_F(Health, ASwitchThatComesBackWithACarrierNeedsNoProof) {
  EXPECT_TRUE(health.carrier(port("leaf1", "spine1"), false));
  EXPECT_FALSE(health.carrier(port("leaf1", "spine1"), false)) << "no news";
  judge_after(0);
  health.no_word(port("leaf1", "spine1"), now);
  judge_after(kSecond);
  EXPECT_TRUE(health.carrier(port("leaf1", "spine1"), true));
  judge_after(kSecond);
  judge_after(LinkHealth::kHoldNs);
  EXPECT_EQ(condition(up), LinkCondition::kHealthy);
  EXPECT_EQ(condition(down), LinkCondition::kHealthy);
}

TEST_F(Health, LossesDrainALinkForAProbationThatDoubles) {
  const LossSuspect alone{.link = up, .place = 1, .candidates = 1, .flows = 3, .loss = 0.01};
  health.suspect({&alone, 1}, now);
  judge_after(0);
  EXPECT_EQ(condition(up), LinkCondition::kFailing);
  EXPECT_EQ(health.status(up).evidence, "3 flows over it lost 1 % of the packets");
  judge_after(LinkHealth::kProbationNs);
  EXPECT_EQ(condition(up), LinkCondition::kFailing);
  judge_after(1);
  EXPECT_EQ(condition(up), LinkCondition::kUnknown);
  health.suspect({&alone, 1}, now);
  judge_after(LinkHealth::kProbationNs + 1);
  EXPECT_EQ(condition(up), LinkCondition::kFailing);
  judge_after(LinkHealth::kProbationNs);
  EXPECT_EQ(condition(up), LinkCondition::kUnknown);
}

TEST_F(Health, ForgottenLossesLeaveNoTrace) {
  health.carrier(port("leaf1", "spine1"), true);
  const LossSuspect alone{.link = up, .place = 1, .candidates = 1, .flows = 3, .loss = 0.01};
  health.suspect({&alone, 1}, now);
  judge_after(0);
  EXPECT_EQ(condition(up), LinkCondition::kFailing);
  health.forget_losses();
  judge_after(0);
  EXPECT_EQ(condition(up), LinkCondition::kHealthy);
  health.suspect({&alone, 1}, now);
  judge_after(LinkHealth::kProbationNs + 1);
  EXPECT_EQ(condition(up), LinkCondition::kHealthy) << "the probation is the first again";
}

TEST_F(Health, OneOfTwoIsASuspectUntilItIsTheOnlyOne) {
  const LossSuspect sign{.link = up, .place = 1, .candidates = 2, .flows = 1, .loss = 0.1};
  const LossSuspect other{.link = link("leaf1", "spine2"), .place = 1, .candidates = 2, .flows = 1, .loss = 0.1};
  std::vector<LossSuspect> both{sign, other};
  health.suspect(both, now);
  judge_after(0);
  EXPECT_EQ(condition(up), LinkCondition::kSuspect);
  health.suspect({&sign, 1}, now);
  judge_after(0);
  EXPECT_EQ(condition(up), LinkCondition::kFailing);
  health.suspect(both, now);
  judge_after(0);
  EXPECT_EQ(condition(up), LinkCondition::kFailing) << "it says less than was known";
}

TEST_F(Health, WhatIsSuspectAlreadyExplainsLaterLosses) {
  const LinkId host = fabric.port(*fabric.find_port(*fabric.find_node("h1"), "eth0")).out;
  const std::vector<LossSuspect> first{{.link = host, .place = 1, .candidates = 2, .flows = 1, .loss = 0.1},
                                       {.link = up, .place = 1, .candidates = 2, .flows = 1, .loss = 0.1}};
  health.suspect(first, now);
  judge_after(kSecond);
  EXPECT_EQ(condition(up), LinkCondition::kSuspect);
  const LinkId other = link("leaf1", "spine2");  // the flow went there, and still loses packets
  const std::vector<LossSuspect> second{{.link = host, .place = 1, .candidates = 2, .flows = 1, .loss = 0.1},
                                        {.link = other, .place = 1, .candidates = 2, .flows = 1, .loss = 0.1}};
  health.suspect(second, now);
  judge_after(kSecond);
  EXPECT_EQ(condition(host), LinkCondition::kFailing);
  EXPECT_EQ(condition(other), LinkCondition::kUnknown);
}

TEST_F(Health, ACleanFlowExoneratesOneOfSeveralButNotTheOnlyOne) {
  LossSuspect sign{.link = up, .place = 1, .candidates = 2, .flows = 1, .loss = 0.1};
  const LossSuspect other{.link = link("leaf1", "spine2"), .place = 1, .candidates = 2, .flows = 1, .loss = 0.1};
  const std::vector<LossSuspect> both{sign, other};
  health.suspect(both, now);
  judge_after(0);
  health.clean(up);
  judge_after(0);
  EXPECT_NE(condition(up), LinkCondition::kSuspect);
  EXPECT_EQ(condition(other.link), LinkCondition::kSuspect);
  sign.candidates = 1;
  health.suspect({&sign, 1}, now);
  health.clean(up);
  judge_after(0);
  EXPECT_EQ(condition(up), LinkCondition::kFailing);
}

}  // namespace
}  // namespace te::diagnosis
