// SPDX-License-Identifier: Apache-2.0
#include "topology/ecmp_knowledge.h"

#include <gtest/gtest.h>

#include <set>
#include <string>
#include <vector>

#include "three_tier.h"
#include "topology/builder.h"

namespace te {
namespace {

using Status = ComposedPath::Status;

IpAddress ip(const std::string& text) { return *IpAddress::parse(text); }

/// What a switch port of the Clos under test is called in an answer.
IpAddress spine_address(int spine, int leaf = 1, int cable = 0) {
  return ip("172." + std::to_string(20 + cable) + "." + std::to_string(leaf) + "." + std::to_string(spine));
}

class EcmpTest : public ::testing::Test {
 protected:
  explicit EcmpTest(const ClosSpec& spec = {}) : fabric(build_clos(spec)), routing(fabric), known(routing) {}

  Lesson answer(std::uint16_t port, int spine) {
    auto lesson = known.learn_probe(pair, port, 2, spine_address(spine), ++now_ns);
    EXPECT_TRUE(lesson.ok()) << lesson.error().message;
    return lesson.ok() ? *lesson : Lesson::kNothing;
  }
  LinkId uplink(int spine, const std::string& cable = "") const {
    return fabric.port(*fabric.find_port(leaf1, "spine" + std::to_string(spine) + cable)).out;
  }
  LinkId downlink(int spine) const {
    return fabric.port(*fabric.find_port(*fabric.find_node("spine" + std::to_string(spine)), "leaf2")).out;
  }
  int spine_of(std::uint16_t port) {
    const auto path = known.compose(pair, port);
    const ComposedPath& kept = known.way(pair, port);
    EXPECT_EQ(kept.status, path.status);
    EXPECT_EQ(kept.links, path.links);
    EXPECT_EQ(kept.parallel_hops, path.parallel_hops);
    if (!path.reaches()) return 0;
    return std::stoi(fabric.node(fabric.link(path.links[1]).to).name.substr(5));
  }

  Fabric fabric;
  Routing routing;
  EcmpKnowledge known;
  AddressPair pair{ip("10.1.1.2"), ip("10.2.1.2"), 0};
  NodeId leaf1 = *fabric.find_node("leaf1");
  std::int64_t now_ns = 0;
};

TEST_F(EcmpTest, WaysAreKeptUntilSomethingIsLearnedOfThePair) {
  AddressPair other = pair;
  other.destination = ip("10.2.2.2");
  EXPECT_EQ(known.way(pair, 50000).status, Status::kPartlyKnown);
  const std::uint64_t version = known.version_of(pair);
  const std::uint64_t other_version = known.version_of(other);
  answer(50000, 2);
  EXPECT_EQ(known.way(pair, 50000).status, Status::kKnown);
  EXPECT_GT(known.version_of(pair), version);
  EXPECT_EQ(known.version_of(other), other_version);
  const std::uint64_t learned = known.version_of(pair);
  answer(50000, 2);  // confirms it
  EXPECT_EQ(known.version_of(pair), learned);
  known.doubt(pair, 50000);
  EXPECT_EQ(known.way(pair, 50000).status, Status::kPartlyKnown);
  answer(50000, 2);
  fabric.set_link_state(uplink(2), LinkState::kDown);
  known.sync();
  EXPECT_FALSE(known.way(pair, 50000).reaches());
  EXPECT_GT(known.version_of(other), other_version);
}

TEST_F(EcmpTest, NothingIsKnownAtFirst) {
  const auto path = known.compose(pair, 50000);
  EXPECT_EQ(path.status, Status::kPartlyKnown);
  EXPECT_EQ(path.unknown_at, leaf1);
  EXPECT_EQ(path.links.size(), 1U);
}

TEST_F(EcmpTest, AnAnswerMakesThePathKnown) {
  EXPECT_EQ(answer(50000, 3), Lesson::kNew);
  const auto path = known.compose(pair, 50000);
  EXPECT_EQ(path.status, Status::kKnown);
  ASSERT_EQ(path.links.size(), 4U);
  EXPECT_EQ(path.links[1], uplink(3));
  EXPECT_EQ(path.links[2], downlink(3));
}

TEST_F(EcmpTest, HopsWithOneChoiceNeedNoKnowledge) {
  const AddressPair inside{ip("10.1.1.2"), ip("10.1.2.2"), 0};
  const auto path = known.compose(inside, 50000);
  EXPECT_EQ(path.status, Status::kKnown);
  EXPECT_EQ(path.confidence, 255);
}

TEST_F(EcmpTest, KnowledgeIsOfOnePort) {
  answer(50000, 3);
  EXPECT_EQ(known.compose(pair, 50001).status, Status::kPartlyKnown);
}

TEST_F(EcmpTest, KnowledgeIsOfOneVlan) {
  answer(50000, 3);
  AddressPair tagged = pair;
  tagged.vlan = 7;
  EXPECT_EQ(known.compose(tagged, 50000).status, Status::kPartlyKnown);
}

TEST_F(EcmpTest, KnowledgeIsOfOneDirection) {
  answer(50000, 3);
  EXPECT_EQ(known.compose({pair.destination, pair.source, 0}, 50000).status, Status::kPartlyKnown);
}

TEST_F(EcmpTest, AgreeingAnswersRaiseConfidence) {
  answer(50000, 3);
  EXPECT_EQ(answer(50000, 3), Lesson::kConfirmed);
  EXPECT_EQ(known.compose(pair, 50000).confidence, 2);
}

TEST_F(EcmpTest, TellsTheAgeOfTheOldestHopUsed) {
  now_ns = 41;
  answer(50000, 3);
  EXPECT_EQ(known.compose(pair, 50000).oldest_ns, 42);
}

TEST_F(EcmpTest, AnUnknownAddressHasNoRoute) {
  EXPECT_EQ(known.compose({ip("9.9.9.9"), pair.destination, 0}, 50000).status, Status::kNoRoute);
}

TEST_F(EcmpTest, AWayOverADownLinkIsBrokenThere) {
  answer(50000, 3);
  answer(50001, 2);
  fabric.set_link_state(downlink(3), LinkState::kDown);
  const ComposedPath way = known.compose(pair, 50000);
  EXPECT_EQ(way.status, Status::kBroken);
  EXPECT_EQ(way.links.back(), downlink(3));
  EXPECT_EQ(spine_of(50001), 2);
  EXPECT_EQ(known.port_that_ends_at(pair, downlink(3)), std::optional<std::uint16_t>(50000));
  EXPECT_EQ(known.port_that_ends_at(pair, downlink(2)), std::nullopt);
}

TEST_F(EcmpTest, ADownNicBreaksEveryWay) {
  fabric.set_link_state(fabric.port(*fabric.find_address(pair.source)).out, LinkState::kDown);
  EXPECT_EQ(known.compose(pair, 50000).status, Status::kBroken);
  EXPECT_EQ(known.compose(pair, 50000).links.size(), 1U);
}

// Answers

TEST_F(EcmpTest, ExplainsAnUnknownResponder) {
  const auto lesson = known.learn_probe(pair, 50000, 2, ip("192.0.2.1"), 1);
  ASSERT_FALSE(lesson.ok());
  EXPECT_EQ(
      lesson.error().message,
      "192.0.2.1 answered TTL 2 of 10.1.1.2 -> 10.2.1.2 port 50000: no port of the topology has this address; give it "
      "to its switch in the topology file");
  EXPECT_EQ(known.hops(), 0U);
}

TEST_F(EcmpTest, RefusesAResponderThatIsOnNoPath) {
  const auto lesson = known.learn_probe(pair, 50000, 2, ip("172.16.2.1"), 1);  // leaf2
  ASSERT_FALSE(lesson.ok());
  EXPECT_NE(lesson.error().message.find("leaf2 is on no equal-cost path"), std::string::npos);
}

TEST_F(EcmpTest, RefusesAnAnswerOfAHost) { EXPECT_FALSE(known.learn_probe(pair, 50000, 4, pair.destination, 1).ok()); }

TEST_F(EcmpTest, RefusesTtlsThatCannotBe) {
  EXPECT_FALSE(known.learn_probe(pair, 50000, 0, spine_address(1), 1).ok());
  EXPECT_FALSE(known.learn_probe(pair, 50000, 4000000000U, spine_address(1), 1).ok());
}

TEST_F(EcmpTest, TheFirstSwitchTellsNothing) {
  EXPECT_EQ(*known.learn_probe(pair, 50000, 1, ip("10.1.1.1"), 1), Lesson::kNothing);
}

TEST_F(EcmpTest, RefusesAnotherFirstSwitch) {
  EXPECT_FALSE(known.learn_probe(pair, 50000, 1, spine_address(1), 1).ok());
}

TEST_F(EcmpTest, AnyAddressOfASwitchTellsTheSwitch) {
  ASSERT_TRUE(known.learn_probe(pair, 50000, 2, spine_address(3, 2), 1).ok());  // the spine's port towards leaf2
  EXPECT_EQ(spine_of(50000), 3);
}

TEST_F(EcmpTest, AHopSeenOtherwiseCounts) {
  ASSERT_TRUE(known.learn(pair, 50000, {leaf1, uplink(2), false, HopSource::kSeen}, 1).ok());
  EXPECT_EQ(spine_of(50000), 2);
}

TEST_F(EcmpTest, RefusesALinkThatIsNoChoiceThere) {
  EXPECT_FALSE(known.learn(pair, 50000, {leaf1, downlink(2), false, HopSource::kSeen}, 1).ok());
}

// Contradictions

TEST_F(EcmpTest, OneOddAnswerMakesTheHopDoubted) {
  answer(50000, 3);
  EXPECT_EQ(answer(50000, 1), Lesson::kContradicted);
  EXPECT_EQ(known.compose(pair, 50000).status, Status::kPartlyKnown);
  EXPECT_EQ(known.ports_to_check(pair), std::vector<std::uint16_t>{50000});
}

TEST_F(EcmpTest, OneOddAnswerIsNoVerdict) {
  answer(50000, 3);
  answer(50000, 1);
  answer(50000, 3);
  EXPECT_EQ(spine_of(50000), 3);
  EXPECT_EQ(known.switch_knowledge(leaf1).state, SwitchEcmp::kLearned);
}

TEST_F(EcmpTest, ASecondAnswerLikeTheOddOneReplacesWhatWasHeld) {
  answer(50000, 3);
  answer(50000, 1);
  EXPECT_EQ(answer(50000, 1), Lesson::kReplaced);
  EXPECT_EQ(spine_of(50000), 1);
}

TEST_F(EcmpTest, AnswersThatKeepChangingMarkTheSwitch) {
  answer(50000, 3);
  answer(50000, 1);
  answer(50000, 3);
  EXPECT_EQ(answer(50000, 1), Lesson::kSwitchNotAFunction);
  const auto path = known.compose(pair, 50000);
  EXPECT_EQ(path.status, Status::kNotAFunction);
  EXPECT_EQ(path.unknown_at, leaf1);
  EXPECT_EQ(known.switch_knowledge(leaf1).state, SwitchEcmp::kNotAFunction);
}

TEST_F(EcmpTest, TwoPortsThatChangeAndReturnMarkTheSwitch) {
  for (const std::uint16_t port : std::initializer_list<std::uint16_t>{50000, 50001}) {
    answer(port, 3);
    answer(port, 1);
    answer(port, 3);
  }
  EXPECT_EQ(known.switch_knowledge(leaf1).state, SwitchEcmp::kNotAFunction);
}

TEST_F(EcmpTest, OddAnswersAreForgivenAfterManyThatAgree) {
  for (const std::uint16_t port : std::initializer_list<std::uint16_t>{50000, 50001, 50002}) {
    answer(port, 3);
    answer(port, 1);
    for (int i = 0; i < 5; ++i) answer(port, 3);
  }
  EXPECT_EQ(known.switch_knowledge(leaf1).state, SwitchEcmp::kLearned);
}

TEST_F(EcmpTest, AVerdictStandsUntilTheGroupChanges) {
  for (int i = 0; i < 4; ++i) answer(50000, 1 + i % 2);
  ASSERT_EQ(known.switch_knowledge(leaf1).state, SwitchEcmp::kNotAFunction);
  EXPECT_EQ(answer(50001, 1), Lesson::kSwitchNotAFunction);
  fabric.set_link_state(uplink(4), LinkState::kDown);
  known.sync();
  EXPECT_EQ(answer(50001, 1), Lesson::kNew);
}

TEST_F(EcmpTest, SeveralPortsThatSettleElsewhereAreANewEpoch) {
  for (const std::uint16_t port : std::initializer_list<std::uint16_t>{50000, 50001, 50002}) answer(port, 3);
  for (const std::uint16_t port : std::initializer_list<std::uint16_t>{50000, 50001}) {
    answer(port, 1);
    answer(port, 1);
  }
  EXPECT_EQ(known.sync(), std::vector<NodeId>{leaf1});
  EXPECT_EQ(known.switch_knowledge(leaf1).epoch, 2U);
  EXPECT_EQ(known.compose(pair, 50002).status, Status::kPartlyKnown);
  EXPECT_EQ(known.switch_knowledge(leaf1).state, SwitchEcmp::kLearned);
}

TEST_F(EcmpTest, DoubtHidesAPortUntilItIsProbedAgain) {
  answer(50000, 3);
  known.doubt(pair, 50000);
  EXPECT_EQ(spine_of(50000), 0);
  EXPECT_EQ(answer(50000, 3), Lesson::kConfirmed);
  EXPECT_EQ(spine_of(50000), 3);
}

// Epochs

TEST_F(EcmpTest, ALostMemberBumpsOnlyThatSwitch) {
  answer(50000, 3);
  fabric.set_link_state(uplink(4), LinkState::kDown);
  EXPECT_EQ(known.sync(), std::vector<NodeId>{leaf1});
  EXPECT_EQ(known.switch_knowledge(leaf1).epoch, 2U);
  EXPECT_EQ(known.switch_knowledge(*fabric.find_node("spine3")).epoch, 1U);
}

TEST_F(EcmpTest, ARemoteLossLeavesTheGroupOfTheSwitch) {
  answer(50000, 3);
  fabric.set_link_state(downlink(4), LinkState::kDown);
  const auto bumped = known.sync();
  EXPECT_EQ(std::count(bumped.begin(), bumped.end(), leaf1), 0);
  EXPECT_EQ(spine_of(50000), 3);
}

TEST_F(EcmpTest, AChangeElsewhereLeavesTheEpoch) {
  answer(50000, 3);
  fabric.set_link_state(fabric.link(uplink(4)).reverse, LinkState::kDown);
  EXPECT_TRUE(known.sync().empty());
  EXPECT_EQ(spine_of(50000), 3);
}

TEST_F(EcmpTest, KnowledgeOfAnotherMembershipDoesNotCount) {
  answer(50000, 3);
  fabric.set_link_state(uplink(4), LinkState::kDown);
  EXPECT_EQ(spine_of(50000), 0);
  EXPECT_EQ(known.ports_to_check(pair), std::vector<std::uint16_t>{50000});
}

class RestoredGroup : public EcmpTest {
 protected:
  RestoredGroup() {
    answer(50000, 3);
    answer(50001, 2);
    fabric.set_link_state(uplink(4), LinkState::kDown);
    known.sync();
    fabric.set_link_state(uplink(4), LinkState::kHealthy);
    known.sync();
  }
};

TEST_F(RestoredGroup, WaitsForACheck) {
  EXPECT_EQ(known.switch_knowledge(leaf1).epoch, 3U);
  EXPECT_EQ(spine_of(50000), 0);
  EXPECT_EQ(known.ports_to_check(pair), (std::vector<std::uint16_t>{50000, 50001}));
}

TEST_F(RestoredGroup, GetsItsOldKnowledgeBackAfterOneCheck) {
  EXPECT_EQ(answer(50000, 3), Lesson::kConfirmed);
  EXPECT_EQ(spine_of(50001), 2);
  EXPECT_TRUE(known.ports_to_check(pair).empty());
}

TEST_F(RestoredGroup, DropsItsOldKnowledgeWhenTheCheckFails) {
  EXPECT_EQ(answer(50000, 1), Lesson::kReplaced);
  EXPECT_EQ(spine_of(50000), 1);
  EXPECT_EQ(spine_of(50001), 0);
  EXPECT_EQ(answer(50001, 4), Lesson::kNew);
}

TEST_F(RestoredGroup, ANewPortChecksNothing) {
  answer(50002, 1);
  EXPECT_EQ(spine_of(50002), 1);
  EXPECT_EQ(spine_of(50001), 0);
}

// What to probe

TEST_F(EcmpTest, OnlyTheSecondTtlTellsSomethingInTwoTiers) {
  const auto hops = known.hops_to_learn(pair);
  ASSERT_EQ(hops.size(), 1U);
  EXPECT_EQ(hops[0].ttl, 2U);
  EXPECT_EQ(hops[0].choosing, std::vector<NodeId>{leaf1});
  EXPECT_EQ(hops[0].answering.size(), 4U);
}

TEST_F(EcmpTest, NothingIsToBeLearnedInsideALeaf) {
  EXPECT_TRUE(known.hops_to_learn({ip("10.1.1.2"), ip("10.1.2.2"), 0}).empty());
}

TEST_F(EcmpTest, UntriedPortsAreDifferentPortsOfTheRange) {
  const auto ports = known.untried_ports(pair, 20000);
  EXPECT_EQ(ports.size(), 16384U);
  EXPECT_EQ(std::set<std::uint16_t>(ports.begin(), ports.end()).size(), 16384U);
  EXPECT_GE(*std::min_element(ports.begin(), ports.end()), kFirstRocePort);
}

TEST_F(EcmpTest, UntriedPortsLeaveOutThoseTried) {
  const auto before = known.untried_ports(pair, 2);
  answer(before[0], 1);
  EXPECT_EQ(known.untried_ports(pair, 1)[0], before[1]);
  EXPECT_EQ(known.ports_tried(pair), 1U);
}

TEST_F(EcmpTest, PortsAreListedByPath) {
  answer(50002, 2);
  answer(50000, 2);
  answer(50001, 4);
  const auto paths = routing.paths(*fabric.find_address(pair.source), *fabric.find_address(pair.destination)).paths;
  const auto ports = known.ports_by_path(pair, paths);
  ASSERT_EQ(ports.size(), 4U);
  std::size_t without = 0;
  for (std::size_t i = 0; i < paths.size(); ++i) {
    if (paths[i].links[1] == uplink(2)) {
      EXPECT_EQ(ports[i].ports, (std::vector<std::uint16_t>{50000, 50002}));
    } else if (paths[i].links[1] == uplink(4)) {
      EXPECT_EQ(ports[i].ports, (std::vector<std::uint16_t>{50001}));
    } else {
      ++without;
      EXPECT_TRUE(ports[i].ports.empty());
    }
  }
  EXPECT_EQ(without, 2U);
}

// Memory

TEST_F(EcmpTest, ForgetsPairsNotUsedForLong) {
  known.learn_probe(pair, 50000, 2, spine_address(1), 100).value();
  EXPECT_EQ(known.forget_unused(150, 60), 0U);
  EXPECT_EQ(known.forget_unused(160, 60), 1U);
  EXPECT_EQ(known.hops(), 0U);
  EXPECT_EQ(known.switch_knowledge(leaf1).hops, 0U);
}

TEST_F(EcmpTest, KeepsPairsInUse) {
  known.learn_probe(pair, 50000, 2, spine_address(1), 100).value();
  known.touch(pair, 150);
  EXPECT_EQ(known.forget_unused(160, 60), 0U);
}

TEST_F(EcmpTest, AFullStoreForgetsThePairUsedLongestAgo) {
  EcmpKnowledge small(routing, 4);
  const AddressPair old{ip("10.1.1.2"), ip("10.2.1.2"), 0};
  const AddressPair recent{ip("10.1.2.2"), ip("10.2.1.2"), 0};
  for (const std::uint16_t port : std::initializer_list<std::uint16_t>{50000, 50001}) {
    ASSERT_TRUE(small.learn_probe(old, port, 2, spine_address(1), 1).ok());
    ASSERT_TRUE(small.learn_probe(recent, port, 2, spine_address(1), 2).ok());
  }
  ASSERT_TRUE(small.learn_probe({ip("10.1.3.2"), ip("10.2.1.2"), 0}, 50000, 2, spine_address(1), 3).ok());
  EXPECT_EQ(small.pairs(), 2U);
  EXPECT_EQ(small.compose(old, 50000).status, Status::kPartlyKnown);
  EXPECT_EQ(small.compose(recent, 50000).status, Status::kKnown);
}

// Parallel links

class ParallelTest : public EcmpTest {
 protected:
  ParallelTest() : EcmpTest({.spines = 2, .cables = 2}) {}
};

TEST_F(ParallelTest, TheAddressOfTheArrivingPortTellsParallelLinksApart) {
  ASSERT_TRUE(known.learn_probe(pair, 50000, 2, spine_address(1, 1, 1), 1).ok());
  const auto path = known.compose(pair, 50000);
  EXPECT_EQ(path.links[1], uplink(1, ".1"));
  EXPECT_EQ(path.status, Status::kPartlyKnown);  // the spine's choice between its two cables
}

TEST_F(ParallelTest, AnotherAddressOfTheSwitchIsOneOfTheParallelLinks) {
  ASSERT_TRUE(known.learn_probe(pair, 50000, 2, spine_address(1, 2), 1).ok());
  ASSERT_TRUE(known.learn_probe(pair, 50000, 3, ip("172.16.2.1"), 1).ok());
  const auto path = known.compose(pair, 50000);
  EXPECT_EQ(path.status, Status::kOneOfParallel);
  EXPECT_EQ(path.parallel_hops, (std::vector<std::uint32_t>{1}));
}

TEST_F(ParallelTest, AnExactAnswerRefinesOneOfParallel) {
  ASSERT_TRUE(known.learn_probe(pair, 50000, 2, spine_address(1, 2), 1).ok());
  EXPECT_EQ(*known.learn_probe(pair, 50000, 2, spine_address(1, 1, 1), 2), Lesson::kConfirmed);
  EXPECT_EQ(known.compose(pair, 50000).links[1], uplink(1, ".1"));
}

TEST_F(ParallelTest, APortOnOneOfParallelIsListedAsMaybe) {
  ASSERT_TRUE(known.learn_probe(pair, 50000, 2, spine_address(1, 2), 1).ok());
  ASSERT_TRUE(known.learn_probe(pair, 50000, 3, ip("172.16.2.1"), 1).ok());
  const auto paths = routing.paths(*fabric.find_address(pair.source), *fabric.find_address(pair.destination)).paths;
  std::size_t maybe = 0;
  for (const PathPorts& ports : known.ports_by_path(pair, paths)) {
    EXPECT_TRUE(ports.ports.empty());
    maybe += ports.maybe.size();
  }
  EXPECT_EQ(maybe, 2U);
}

TEST_F(ParallelTest, BothTtlsWithAChoiceAreWorthProbing) {
  const auto hops = known.hops_to_learn(pair);
  ASSERT_EQ(hops.size(), 2U);
  EXPECT_EQ(hops[1].ttl, 3U);
  EXPECT_EQ(hops[1].answering, std::vector<NodeId>{*fabric.find_node("leaf2")});
}

// Three tiers

class ThreeTierTest : public ::testing::Test {
 protected:
  Result<Lesson> answer(std::uint32_t ttl, const std::string& responder) {
    return known.learn_probe(pair, 50000, ttl, ip(responder), 1);
  }
  Fabric fabric = three_tier();
  Routing routing{fabric};
  EcmpKnowledge known{routing};
  AddressPair pair{ip("10.1.0.2"), ip("10.2.0.2"), 0};
};

TEST_F(ThreeTierTest, TwoTtlsTellTheWholePath) {
  const auto hops = known.hops_to_learn(pair);
  ASSERT_EQ(hops.size(), 2U);
  EXPECT_EQ(hops[0].ttl, 2U);
  EXPECT_EQ(hops[1].ttl, 3U);
  EXPECT_EQ(hops[1].choosing.size(), 2U);
  EXPECT_EQ(hops[1].answering.size(), 4U);
}

TEST_F(ThreeTierTest, PathsAreComposedFromHops) {
  ASSERT_TRUE(answer(2, "172.16.1.2").ok());  // agg1
  EXPECT_EQ(known.compose(pair, 50000).status, Status::kPartlyKnown);
  EXPECT_EQ(known.compose(pair, 50000).unknown_at, fabric.find_node("agg1"));
  ASSERT_TRUE(answer(3, "172.16.6.2").ok());  // core2
  const auto path = known.compose(pair, 50000);
  EXPECT_EQ(path.status, Status::kKnown);
  EXPECT_EQ(path.links.size(), 6U);
}

TEST_F(ThreeTierTest, RefusesADeeperAnswerThatDoesNotFitTheHopBefore) {
  ASSERT_TRUE(answer(2, "172.16.1.2").ok());   // agg1
  EXPECT_FALSE(answer(3, "172.16.7.2").ok());  // core3 hangs on agg2
}

}  // namespace
}  // namespace te
