// SPDX-License-Identifier: Apache-2.0
#include "te-controller/engine/prober.h"

#include <gtest/gtest.h>

#include <algorithm>

#include "tests/support/moments.h"
#include "topology/builder.h"

namespace te {
namespace {

class ProberTest : public ::testing::Test {
 protected:
  static AddressPair pair_of(const char* from, const char* to) {
    return {.source = *IpAddress::parse(from), .destination = *IpAddress::parse(to), .vlan = 0};
  }
  static ProbeTarget target(const AddressPair& pair, const std::string& node, bool data,
                            std::set<std::uint16_t> ports) {
    ProbeTarget one;
    one.pair = pair;
    one.node = node;
    one.flow = {.source = pair.source, .destination = pair.destination, .destination_qpn = 9};
    one.ifindex = 4;
    one.data = data;
    one.ports_in_use = std::move(ports);
    return one;
  }
  /// Answers as switches do whose leaf sends port p over spine p % spines.
  v1::ProbeResult answer(const v1::ProbeRequest& request) const {
    v1::ProbeResult result;
    result.set_id(request.id());
    result.set_done(true);
    for (const std::uint32_t port : request.ports()) {
      v1::ProbeAnswer& one = *result.add_answers();
      one.set_port(port);
      one.set_ttl(request.ttls(0));
      one.set_responder(spine_address(port % 4).to_bytes());
      result.set_sent(result.sent() + 1);
    }
    return result;
  }
  [[nodiscard]] IpAddress spine_address(std::uint32_t spine) const {
    const NodeId leaf = *fabric_.find_node("leaf1");
    const NodeId node = *fabric_.find_node("spine" + std::to_string(spine + 1));
    for (const Link& link : fabric_.links()) {
      if (link.from == leaf && link.to == node) return fabric_.port(link.to_port).addresses.front();
    }
    return {};
  }

  const AddressPair across_ = pair_of("10.1.1.2", "10.2.1.2");
  Fabric fabric_ = build_clos({.leaves = 2, .hosts_per_leaf = 2, .spines = 4});
  Routing routing_{fabric_};
  EcmpKnowledge knowledge_{routing_};
  Prober prober_{routing_, knowledge_, {}};
};

TEST_F(ProberTest, AsksForThePortsInUseFirstAndOnlyAtHopsWithAChoice) {
  prober_.set_targets({target(across_, "h1", true, {50001, 50002})}, 0);
  const auto out = prober_.next(0);
  ASSERT_FALSE(out.empty());
  const v1::ProbeRequest& first = out[0].message.probe_request();
  EXPECT_EQ(out[0].node, "h1");
  EXPECT_EQ(std::vector<std::uint32_t>(first.ports().begin(), first.ports().end()),
            (std::vector<std::uint32_t>{50001, 50002}));
  EXPECT_EQ(std::vector<std::uint32_t>(first.ttls().begin(), first.ttls().end()), std::vector<std::uint32_t>{2});
  EXPECT_EQ(first.flow().ifindex(), 4U);
  EXPECT_EQ(first.flow().destination_qpn(), 9U);
  EXPECT_EQ(first.attempts(), 3U);
}

TEST_F(ProberTest, DoesNotProbeWhereThereIsOnePath) {
  const AddressPair below_one_leaf = pair_of("10.1.1.2", "10.1.2.2");
  prober_.set_targets({target(below_one_leaf, "h1", true, {50001})}, 0);
  EXPECT_TRUE(prober_.next(0).empty());
  EXPECT_EQ(prober_.pairs().at(below_one_leaf).progress, PairProgress::kNothingToLearn);
}

TEST_F(ProberTest, CoversEachPathWithSparesAndThenRests) {
  prober_.set_targets({target(across_, "h1", true, {50001})}, 0);
  std::int64_t now = 0;
  for (; now < 5000 * kMs; now += 20 * kMs) {
    for (const Outgoing& out : prober_.next(now))
      ASSERT_TRUE(prober_.take_result("h1", answer(out.message.probe_request()), now));
  }
  EXPECT_EQ(prober_.pairs().at(across_).progress, PairProgress::kCovered);
  const auto paths =
      routing_.paths(*fabric_.find_address(across_.source), *fabric_.find_address(across_.destination)).paths;
  for (const PathPorts& ports : knowledge_.ports_by_path(across_, paths)) EXPECT_GE(ports.ports.size(), 3U);
  EXPECT_TRUE(prober_.next(now).empty());
}

TEST_F(ProberTest, ListsPathsThatNoPortReaches) {
  prober_.set_targets({target(across_, "h1", true, {50001})}, 0);
  for (std::int64_t now = 0; now < 20000 * kMs; now += 20 * kMs) {
    for (const Outgoing& out : prober_.next(now)) {
      v1::ProbeResult result = answer(out.message.probe_request());
      for (v1::ProbeAnswer& one : *result.mutable_answers())
        one.set_responder(spine_address(one.port() % 3).to_bytes());
      ASSERT_TRUE(prober_.take_result("h1", result, now));
    }
  }
  EXPECT_EQ(prober_.pairs().at(across_).progress, PairProgress::kGaveUp);
  EXPECT_EQ(prober_.pairs().at(across_).unreached_paths, 1U);
}

TEST_F(ProberTest, ServesPairsWithDataBeforeOthersAndAllOfThemInTurn) {
  const AddressPair back = pair_of("10.2.1.2", "10.1.1.2");
  const AddressPair second = pair_of("10.1.2.2", "10.2.2.2");
  prober_.set_targets(
      {target(back, "h3", false, {50003}), target(across_, "h1", true, {50001}), target(second, "h2", true, {50002})},
      0);
  const auto out = prober_.next(0);
  ASSERT_GE(out.size(), 4U);
  std::set<std::string> in_use{out[0].node, out[1].node};
  std::set<std::string> cover{out[2].node, out[3].node};
  EXPECT_EQ(in_use, (std::set<std::string>{"h1", "h2"}));
  EXPECT_EQ(cover, (std::set<std::string>{"h1", "h2"}));
}

TEST_F(ProberTest, BacksOffWhileNothingAnswers) {
  prober_.set_targets({target(across_, "h1", true, {50001})}, 0);
  int requests = 0;
  for (std::int64_t now = 0; now < 30000 * kMs; now += 20 * kMs) {
    for (const Outgoing& out : prober_.next(now)) {
      ++requests;
      v1::ProbeResult result = answer(out.message.probe_request());
      for (v1::ProbeAnswer& one : *result.mutable_answers()) one.clear_responder();
      ASSERT_TRUE(prober_.take_result("h1", result, now));
    }
  }
  EXPECT_LT(requests, 20);
  EXPECT_TRUE(prober_.pairs().at(across_).silent);
}

TEST_F(ProberTest, AsksAgainWhenAnAgentNeverAnswersOrIsGone) {
  prober_.set_targets({target(across_, "h1", true, {50001})}, 0);
  ASSERT_FALSE(prober_.next(0).empty());
  EXPECT_TRUE(prober_.next(100 * kMs).empty());
  prober_.disconnected("h1");
  const auto again = prober_.next(200 * kMs);
  ASSERT_FALSE(again.empty());
  EXPECT_EQ(again[0].message.probe_request().ports(0), 50001U);
  (void)prober_.next(20000 * kMs);  // given up, and backed off
  EXPECT_FALSE(prober_.next(21000 * kMs).empty());
}

TEST_F(ProberTest, TakesNoAnswersOfAnotherNodeNorUnaskedPorts) {
  prober_.set_targets({target(across_, "h1", true, {50001})}, 0);
  const auto out = prober_.next(0);
  EXPECT_EQ(*prober_.take_result("h2", answer(out[0].message.probe_request()), kMs), false);
  v1::ProbeResult unasked = answer(out[0].message.probe_request());
  for (v1::ProbeAnswer& one : *unasked.mutable_answers()) one.set_port(60000);
  EXPECT_EQ(*prober_.take_result("h1", unasked, kMs), false);
  EXPECT_EQ(knowledge_.ports_tried(across_), 0U);
}

TEST_F(ProberTest, CountsAnswersThatFitNoPath) {
  prober_.set_targets({target(across_, "h1", true, {50001})}, 0);
  const auto out = prober_.next(0);
  v1::ProbeResult result = answer(out[0].message.probe_request());
  for (v1::ProbeAnswer& one : *result.mutable_answers()) one.set_responder(IpAddress::parse("192.0.2.1")->to_bytes());
  EXPECT_EQ(*prober_.take_result("h1", result, kMs), false);
  EXPECT_EQ(prober_.counters().refused, 1U);
  EXPECT_EQ(prober_.counters().refused_by.at(*IpAddress::parse("192.0.2.1")), 1U);
}

TEST_F(ProberTest, AsksAgainEverMoreRarelyForAPortWhoseAnswersFitNoPath) {
  prober_.set_targets({target(across_, "h1", true, {50001})}, 0);
  int asked = 0;
  int others_late = 0;
  for (std::int64_t now = 0; now < 120'000 * kMs; now += 20 * kMs) {
    for (const Outgoing& out : prober_.next(now)) {
      v1::ProbeResult result = answer(out.message.probe_request());
      for (v1::ProbeAnswer& one : *result.mutable_answers()) {
        if (one.port() != 50001) {
          others_late += now > 60'000 * kMs ? 1 : 0;
          continue;
        }
        ++asked;
        one.set_responder(IpAddress::parse("192.0.2.1")->to_bytes());
      }
      ASSERT_TRUE(prober_.take_result("h1", result, now));
    }
  }
  EXPECT_GE(asked, 4);
  EXPECT_LE(asked, 8);  // after 1, 2, 4, ... s
  EXPECT_EQ(others_late, 0);
  EXPECT_EQ(prober_.pairs().at(across_).progress, PairProgress::kCovered);  // by other ports
  prober_.knowledge_changed();
  const auto anew = prober_.next(120'000 * kMs);
  ASSERT_FALSE(anew.empty());
  EXPECT_EQ(anew[0].message.probe_request().ports(0), 50001U);
}

TEST_F(ProberTest, GivesUpAndBacksOffWhenNoAnswerFitsAPath) {
  prober_.set_targets({target(across_, "h1", true, {50001})}, 0);
  int probes = 0;
  for (std::int64_t now = 0; now < 600'000 * kMs; now += 20 * kMs) {
    for (const Outgoing& out : prober_.next(now)) {
      v1::ProbeResult result = answer(out.message.probe_request());
      for (v1::ProbeAnswer& one : *result.mutable_answers())
        one.set_responder(IpAddress::parse("192.0.2.1")->to_bytes());
      probes += result.answers_size();
      ASSERT_TRUE(prober_.take_result("h1", result, now));
    }
  }
  EXPECT_EQ(prober_.pairs().at(across_).progress, PairProgress::kGaveUp);
  EXPECT_LT(probes, 150);
}

TEST_F(ProberTest, ChargesASwitchThatAnswersThoughItIsOnNoPath) {
  prober_.set_targets({target(across_, "h1", true, {50001})}, 0);
  const IpAddress leaf = fabric_.port(fabric_.node(*fabric_.find_node("leaf1")).ports.front()).addresses.front();
  const auto out = prober_.next(0);
  v1::ProbeResult result = answer(out[0].message.probe_request());
  for (v1::ProbeAnswer& one : *result.mutable_answers()) one.set_responder(leaf.to_bytes());
  ASSERT_TRUE(prober_.take_result("h1", result, 0));
  EXPECT_LT(prober_.answers_left(*fabric_.find_node("leaf1"), 0), prober_.answers_left(*fabric_.find_node("leaf2"), 0));
}

}  // namespace
}  // namespace te
