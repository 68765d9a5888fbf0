// SPDX-License-Identifier: Apache-2.0
// A cable between two switches is cut, and mended, under a ring of flows in a simulated fabric.
#include <gtest/gtest.h>

#include <algorithm>
#include <string>

#include "tests/support/repeats.h"
#include "tests/unit/controller/simulation.h"

namespace te::testing {
namespace {

class LinkFailure : public ::testing::TestWithParam<std::tuple<std::uint64_t, bool>> {
 protected:
  LinkFailure() : simulation(spec()) {}

  static SimulationSpec spec() {
    SimulationSpec spec;
    spec.seed = std::get<0>(GetParam());
    spec.switch_agents = std::get<1>(GetParam());
    spec.route_before_ttl = spec.seed % 2 == 0;
    spec.options.initial_mode = Mode::kAct;
    spec.options.planning.interval_ms = 100;
    spec.options.report_interval_ms = 100;
    return spec;
  }

  void converge() {
    simulation.connect_agents();
    simulation.run_for(10 * kSecond);
    ASSERT_GE(simulation.slowest_bps(), kNear * kIdealBps);
  }

  /// When no flow is sent over the cut cable any more; -1: not within `limit_ns`.
  std::int64_t run_until_unbroken(std::int64_t limit_ns) {
    const std::int64_t begun_ns = simulation.now();
    while (simulation.broken_flows() > 0) {
      if (simulation.now() - begun_ns > limit_ns) return -1;
      simulation.run_for(5 * kMs);
    }
    return simulation.now() - begun_ns;
  }

  diagnosis::LinkCondition condition(const std::string& from, const std::string& to) {
    const Fabric& fabric = simulation.engine().fabric();
    for (LinkId link = 0; link < fabric.links().size(); ++link) {
      const Link& of = fabric.link(link);
      if (fabric.node(of.from).name == from && fabric.node(of.to).name == to) {
        return simulation.engine().link_watch().status(link).condition;
      }
    }
    ADD_FAILURE() << "no link " << from << " -> " << to;
    return {};
  }

  Simulation simulation;
};

INSTANTIATE_TEST_SUITE_P(Seeds, LinkFailure,
                         ::testing::Combine(::testing::Range<std::uint64_t>(1, 1 + repeats(20)), ::testing::Bool()));

TEST_P(LinkFailure, FlowsLeaveADeadLinkAtOnceAndComeBackWhenItIsMended) {
  converge();
  const std::string spine = "spine" + std::to_string(1 + std::get<0>(GetParam()) % 4);
  simulation.set_cable("leaf1", spine, false);
  const std::int64_t limit_ns = std::get<1>(GetParam()) ? kSecond : 3 * kSecond;
  ASSERT_GE(run_until_unbroken(limit_ns), 0) << simulation.broken_flows() << " flows still broken";
  EXPECT_GE(simulation.run_until_slowest(kNear * kIdealOfThreeBps, 3 * kSecond, 4 * kSecond), 0)
      << simulation.slowest_bps();
  EXPECT_EQ(condition("leaf1", spine), diagnosis::LinkCondition::kDown);
  EXPECT_EQ(condition(spine, "leaf1"), diagnosis::LinkCondition::kDown);
  const Fabric& fabric = simulation.engine().fabric();
  EXPECT_EQ(std::ranges::count(fabric.links(), LinkState::kDown, &Link::state), 2);

  simulation.run_for(10 * kSecond);
  simulation.set_cable("leaf1", spine, true);
  EXPECT_GE(simulation.run_until_slowest(kNear * kIdealBps, 3 * kSecond, 15 * kSecond), 0) << simulation.slowest_bps();
  EXPECT_EQ(condition("leaf1", spine), diagnosis::LinkCondition::kHealthy);
  EXPECT_EQ(std::ranges::count(fabric.links(), LinkState::kHealthy, &Link::state), std::ssize(fabric.links()));
  EXPECT_LE(simulation.busiest_switch_second(), 200U);
}

TEST_P(LinkFailure, ADeadCableOfAHostBlamesNoOtherLink) {
  converge();
  const Fabric& fabric = simulation.engine().fabric();
  const std::string host = "h" + std::to_string(1 + std::get<0>(GetParam()) % 8);
  const PortId port = fabric.node(*fabric.find_node(host)).ports.front();
  const std::string leaf = fabric.node(fabric.link(fabric.port(port).out).to).name;
  const int moves = simulation.engine().ledger().total();
  simulation.set_cable(host, leaf, false);
  simulation.run_for(15 * kSecond);
  EXPECT_EQ(condition(host, leaf), diagnosis::LinkCondition::kDown);
  for (LinkId link = 0; link < fabric.links().size(); ++link) {
    const bool of_host =
        fabric.link(link).from == fabric.port(port).node || fabric.link(link).to == fabric.port(port).node;
    EXPECT_EQ(fabric.link(link).state == LinkState::kHealthy, !of_host)
        << fabric.link_name(link) << ": " << simulation.engine().link_watch().status(link).evidence;
  }
  for (int number = moves + 1; number <= simulation.engine().ledger().total(); ++number)
    EXPECT_FALSE(simulation.engine().ledger().find(number)->forced()) << number;
  simulation.set_cable(host, leaf, true);
  EXPECT_GE(simulation.run_until_slowest(kNear * kIdealBps, 3 * kSecond, 15 * kSecond), 0) << simulation.slowest_bps();
}

TEST_P(LinkFailure, FlowsLeaveADeadLinkThoughTheirWayWasNotKnownYet) {
  simulation.connect_agents();
  simulation.run_for(350 * kMs);  // all have told of their flows, few have been probed
  simulation.set_cable("leaf1", "spine" + std::to_string(1 + std::get<0>(GetParam()) % 4), false);
  ASSERT_GE(run_until_unbroken(6 * kSecond), 0) << simulation.broken_flows() << " flows still broken";
}

/// Packets that overtake each other break the sequence as lost ones do.
class Spraying : public ::testing::TestWithParam<std::uint64_t> {
 protected:
  Spraying() : simulation(spec()) { simulation.connect_agents(); }

  static SimulationSpec spec() {
    SimulationSpec spec;
    spec.seed = GetParam();
    spec.options.initial_mode = Mode::kAct;
    spec.options.planning.interval_ms = 100;
    spec.options.report_interval_ms = 100;
    return spec;
  }
  [[nodiscard]] bool all_take_flows() {
    return std::ranges::all_of(simulation.engine().fabric().links(),
                               [](const Link& link) { return link.state == LinkState::kHealthy; });
  }
  [[nodiscard]] SwitchManner manner() {
    return simulation.engine().trials().manner(*simulation.engine().fabric().find_node("leaf1"));
  }
  void converge() {
    for (int i = 0; i < 300 && manner() != SwitchManner::kByPort; ++i) simulation.run_for(100 * kMs);
    ASSERT_EQ(manner(), SwitchManner::kByPort);
    EXPECT_GE(simulation.run_until_slowest(kNear * kIdealBps, 3 * kSecond, 10 * kSecond), 0)
        << simulation.slowest_bps();
    EXPECT_TRUE(all_take_flows());
  }

  Simulation simulation;
};

INSTANTIATE_TEST_SUITE_P(Seeds, Spraying, ::testing::Range<std::uint64_t>(1, 1 + repeats(20)));

TEST_P(Spraying, OfASwitchThatWasNeverTrustedIsNotTakenForLosses) {
  simulation.set_spraying("leaf1", true);
  for (int i = 0; i < 400; ++i) {
    simulation.run_for(50 * kMs);
    ASSERT_TRUE(all_take_flows()) << "after " << i * 50 << " ms";
  }
  EXPECT_EQ(manner(), SwitchManner::kVaries);
  simulation.set_spraying("leaf1", false);
  converge();
}

TEST_P(Spraying, OfASwitchThatWasTrustedIsToldFromLossesWithTime) {
  converge();
  simulation.set_spraying("leaf1", true);
  simulation.run_for(40 * kSecond);
  EXPECT_EQ(manner(), SwitchManner::kVaries);
  EXPECT_TRUE(all_take_flows());
  simulation.set_spraying("leaf1", false);
  converge();
}

}  // namespace
}  // namespace te::testing
