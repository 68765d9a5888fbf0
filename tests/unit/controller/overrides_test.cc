// SPDX-License-Identifier: Apache-2.0
// What operators want otherwise: kept, ended in time, refused where it would cut hosts off, and obeyed by the engine.
#include "te-controller/engine/overrides.h"

#include <gtest/gtest.h>

#include <algorithm>

#include "te-controller/engine/views.h"
#include "tests/unit/controller/simulation.h"

namespace te::testing {
namespace {

v1::OverrideView order(const std::string& target, double ttl_s = 3600) {
  v1::OverrideView one;
  one.set_target(target);
  one.set_who("alice");
  one.set_reason("new optics");
  one.set_until_s(ttl_s);
  return one;
}

v1::OverrideView held(const char* kind, const std::string& target, double until_s) {
  v1::OverrideView one = order(target, until_s);
  one.set_kind(kind);
  return one;
}

TEST(Overrides, EndByThemselvesButNotThoseWithoutAnEnd) {
  Overrides overrides;
  overrides.set(held(Overrides::kDrain, "leaf1:spine1", 100));
  overrides.set(held(Overrides::kDrain, "leaf1:spine2", 0));
  EXPECT_TRUE(overrides.expire(99.9).empty());
  const auto ended = overrides.expire(100);
  ASSERT_EQ(ended.size(), 1U);
  EXPECT_EQ(ended[0].target(), "leaf1:spine1");
  EXPECT_TRUE(overrides.expire(1e12).empty());
  EXPECT_EQ(overrides.all().size(), 1U);
}

TEST(Overrides, ANewerOneTakesThePlaceOfTheSame) {
  Overrides overrides;
  overrides.set(held(Overrides::kDrain, "spine1", 100));
  overrides.set(held(Overrides::kDrain, "spine1", 200));
  EXPECT_TRUE(overrides.expire(150).empty());
  ASSERT_NE(overrides.find(Overrides::kDrain, "spine1"), nullptr);
  EXPECT_EQ(overrides.find(Overrides::kPin, "spine1"), nullptr);
}

TEST(Overrides, ChangesAreToldOnce) {
  Overrides overrides;
  EXPECT_FALSE(overrides.take_changes());
  overrides.set(held(Overrides::kDrain, "spine1", 100));
  ASSERT_TRUE(overrides.take_changes());
  EXPECT_FALSE(overrides.take_changes());
  overrides.restore({held(Overrides::kDrain, "spine2", 100)});
  EXPECT_FALSE(overrides.take_changes()) << "what was stored is no change";
  overrides.expire(100);
  const auto changes = overrides.take_changes();
  ASSERT_TRUE(changes);
  EXPECT_TRUE(changes->empty());
}

TEST(Overrides, OfTwoThatAreStoredUnderOneNameTheLongerHolds) {
  Overrides overrides;
  overrides.restore(
      {held(Overrides::kDrain, "a", 100), held(Overrides::kDrain, "a", 0), held(Overrides::kDrain, "a", 50)});
  ASSERT_EQ(overrides.all().size(), 1U);
  EXPECT_EQ(overrides.all().front().until_s(), 0);
}

TEST(Overrides, TakingBackWhatIsNotThereSaysWhatIs) {
  Overrides overrides;
  overrides.set(held(Overrides::kDrain, "spine1", 100));
  const auto wrong = overrides.erase(Overrides::kDrain, "spine2");
  ASSERT_FALSE(wrong);
  EXPECT_EQ(wrong.error().message, "'spine2' is not drained; drained: spine1");
  EXPECT_EQ(overrides.erase(Overrides::kPin, "1a2b").error().message, "'1a2b' is not pinned; nothing is");
  EXPECT_TRUE(overrides.erase(Overrides::kDrain, "spine1"));
}

TEST(Overrides, DescribeSaysWhoHowLongAndWhy) {
  EXPECT_EQ(describe(held(Overrides::kPin, "1a", 0), 50), "pinned by alice until it is taken back: new optics");
  EXPECT_EQ(describe(held(Overrides::kDrain, "spine1", 110), 50).find("drained by alice for "), 0U);
}

TEST(LinksToDrain, AreOfSwitchesAndBothDirections) {
  const Fabric fabric = build_clos({});
  const auto cable = links_to_drain(fabric, "leaf1:spine1");
  ASSERT_TRUE(cable);
  EXPECT_EQ(cable->size(), 2U);
  const auto spine = links_to_drain(fabric, "spine1");
  ASSERT_TRUE(spine);
  EXPECT_GT(spine->size(), 2U);
  for (const char* wrong : {"spine99", "leaf1:nothing", "h1", "leaf1:h1", "h1:eth0", ""}) {
    EXPECT_FALSE(links_to_drain(fabric, wrong)) << wrong;
  }
  EXPECT_NE(links_to_drain(fabric, "h1").error().message.find("no other way"), std::string::npos);
}

TEST(DrainName, IsTheSameFromBothEndsOfACable) {
  const Fabric fabric = build_clos({});
  EXPECT_EQ(drain_name(fabric, "leaf1:spine1"), "leaf1:spine1");
  EXPECT_EQ(drain_name(fabric, "spine1:leaf1"), "leaf1:spine1");
  for (const char* other : {"spine1", "nobody:x", "leaf1:x", "", ":"}) EXPECT_EQ(drain_name(fabric, other), other);
}

TEST(CutOff, NamesHostsWithoutAWay) {
  const Fabric fabric = build_clos({.leaves = 2, .hosts_per_leaf = 2, .spines = 2});
  Routing routing(fabric);
  const auto one = *links_to_drain(fabric, "spine1");
  EXPECT_EQ(cut_off_by(routing, one), "");
  auto both = one;
  both.merge(*links_to_drain(fabric, "spine2"));
  EXPECT_NE(cut_off_by(routing, both).find(" -> "), std::string::npos);
  auto crossed = *links_to_drain(fabric, "leaf1:spine1");  // leaf1 only by spine2, leaf2 only by spine1
  crossed.merge(*links_to_drain(fabric, "leaf2:spine2"));
  EXPECT_NE(cut_off_by(routing, crossed), "");
}

class Obeys : public ::testing::Test {
 protected:
  Obeys() : simulation(spec()) {
    simulation.connect_agents();
    simulation.run_for(6 * kSecond);
  }
  static SimulationSpec spec() {
    SimulationSpec spec;
    spec.options.initial_mode = Mode::kAct;
    spec.options.planning.interval_ms = 100;
    spec.options.report_interval_ms = 100;
    return spec;
  }
  Engine& engine() { return simulation.engine(); }
  int flows_over(const std::string& name) {
    const v1::SwitchList list = Views(engine()).switches(simulation.now());
    for (const v1::SwitchView& one : list.switches()) {
      if (one.name() == name) return one.elastic_flows();
    }
    return -1;
  }

  Simulation simulation;
};

TEST_F(Obeys, FlowsLeaveADrainedSpineInOnePlanAndComeBackWhenItsTimeIsOver) {
  ASSERT_GT(flows_over("spine2"), 0);
  EXPECT_EQ(Views(engine()).flows("nobody", simulation.now()).error().message,
            "no node of the fabric is called 'nobody'; 'tectl nodes' lists them");
  EXPECT_GE(Views(engine()).flows("spine2", simulation.now())->flows_size(), flows_over("spine2"));
  const int before = engine().ledger().total();
  ASSERT_TRUE(engine().drain(order("spine2", 20), false, simulation.now()));
  simulation.run_for(300 * kMs);
  EXPECT_EQ(flows_over("spine2"), 0);
  EXPECT_EQ(Views(engine()).flows("spine2", simulation.now())->flows_size(), 0);
  const int moved = engine().ledger().total();
  EXPECT_GT(moved, before);
  for (int i = 0; i < 150; ++i) {
    simulation.run_for(100 * kMs);
    ASSERT_EQ(flows_over("spine2"), 0) << "after " << i * 100 << " ms";
  }
  EXPECT_GE(simulation.slowest_bps(), kNear * kIdealOfThreeBps);
  const v1::Status status = Views(engine()).status(simulation.now());
  EXPECT_TRUE(std::ranges::any_of(
      status.warnings(), [](const std::string& warning) { return warning.starts_with("spine2 is drained by alice"); }));
  simulation.run_for(5 * kSecond);  // the 20 seconds are over
  EXPECT_TRUE(engine().overrides().all().empty());
  EXPECT_GE(simulation.run_until_slowest(kNear * kIdealBps, 2 * kSecond, 15 * kSecond), 0);
  EXPECT_GT(flows_over("spine2"), 0);
}

TEST_F(Obeys, ADrainOutlivesTheControllerAndIsTakenBack) {
  ASSERT_TRUE(engine().drain(order("leaf1:spine2", 0), false, simulation.now()));
  simulation.run_for(2 * kSecond);
  simulation.restart_controller(simulation.stored());
  simulation.run_for(5 * kSecond);
  ASSERT_EQ(engine().overrides().all().size(), 1U);
  const Fabric& fabric = engine().fabric();
  EXPECT_EQ(std::ranges::count(fabric.links(), LinkState::kDrained, &Link::state), 2);
  EXPECT_FALSE(engine().take_back(Overrides::kDrain, "leaf1:spine3", "bob", simulation.now()));
  ASSERT_TRUE(engine().take_back(Overrides::kDrain, "leaf1:spine2", "bob", simulation.now()));
  EXPECT_EQ(std::ranges::count(fabric.links(), LinkState::kDrained, &Link::state), 0);
}

TEST_F(Obeys, ADrainStoredUnderTheOtherEndOfItsCableIsTakenBackByEitherName) {
  PersistentState state;
  state.overrides = {held(Overrides::kDrain, "spine2:leaf1", 0)};
  simulation.restart_controller(state);
  EXPECT_FALSE(engine().take_back(Overrides::kDrain, "leaf1:spine3", "bob", simulation.now()));
  EXPECT_TRUE(engine().take_back(Overrides::kDrain, "spine2:leaf1", "bob", simulation.now()));
  EXPECT_TRUE(engine().overrides().all().empty());
}

TEST_F(Obeys, WhatIsDownIsNotMadeDrained) {
  simulation.set_cable("leaf1", "spine2", false);
  simulation.run_for(4 * kSecond);
  ASSERT_TRUE(engine().drain(order("leaf1:spine2"), false, simulation.now()));
  const Fabric& fabric = engine().fabric();
  EXPECT_EQ(std::ranges::count(fabric.links(), LinkState::kDown, &Link::state), 2);
  simulation.set_cable("leaf1", "spine2", true);
  simulation.run_for(15 * kSecond);
  EXPECT_EQ(std::ranges::count(fabric.links(), LinkState::kDown, &Link::state), 0);
  EXPECT_EQ(std::ranges::count(fabric.links(), LinkState::kDrained, &Link::state), 2);
}

TEST_F(Obeys, RefusesWhatWouldCutHostsOffUnlessForced) {
  for (const char* spine : {"spine1", "spine2", "spine3"})
    ASSERT_TRUE(engine().drain(order(spine), false, simulation.now())) << spine;
  const auto refused = engine().drain(order("spine4"), false, simulation.now());
  ASSERT_FALSE(refused);
  EXPECT_NE(refused.error().message.find("would have no way"), std::string::npos);
  EXPECT_EQ(engine().overrides().all().size(), 3U);
  EXPECT_TRUE(engine().drain(order("spine4"), true, simulation.now()));
}

TEST_F(Obeys, APinnedFlowStaysUnlessItsWayCloses) {
  const Flow* pinned = nullptr;
  for (const auto& [id, flow] : engine().fleet().flows()) {
    const ComposedPath path = engine().knowledge().compose(id.pair(), flow.wire_port());
    const bool by_spine2 = std::ranges::any_of(path.links, [&](LinkId link) {
      return engine().fabric().node(engine().fabric().link(link).to).name == "spine2";
    });
    if (by_spine2 && flow.kind(simulation.now()) == FlowKind::kData) pinned = &flow;
  }
  ASSERT_NE(pinned, nullptr);
  const FlowId id = pinned->id;
  const std::uint16_t port = pinned->wire_port();
  EXPECT_FALSE(engine().pin(order("zz"), simulation.now()));
  ASSERT_TRUE(engine().pin(order(id.short_id().substr(0, 7)), simulation.now()));
  const auto why = engine().plan_builder().immovable(*engine().fleet().find(id), simulation.now());
  EXPECT_EQ(why, "pinned by alice: new optics");
  for (const char* other : {"spine1", "spine3"})  // all would have to be spread anew
    ASSERT_TRUE(engine().drain(order(other), false, simulation.now()));
  simulation.run_for(10 * kSecond);
  EXPECT_EQ(engine().fleet().find(id)->wire_port(), port);
  ASSERT_TRUE(engine().take_back(Overrides::kDrain, "spine1", "bob", simulation.now()));
  ASSERT_TRUE(engine().drain(order("spine2"), false, simulation.now()));
  simulation.run_for(kSecond);
  EXPECT_NE(engine().fleet().find(id)->wire_port(), port);
}

}  // namespace
}  // namespace te::testing
