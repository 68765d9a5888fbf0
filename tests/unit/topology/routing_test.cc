// SPDX-License-Identifier: Apache-2.0
#include "topology/routing.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <string>

#include "topology/builder.h"

namespace te {
namespace {

PortId nic(const Fabric& fabric, const std::string& host) { return *fabric.find_port(*fabric.find_node(host), "eth0"); }

LinkId link_from(const Fabric& fabric, const std::string& node, const std::string& port) {
  return fabric.port(*fabric.find_port(*fabric.find_node(node), port)).out;
}

TEST(Routing, FindsOnePathPerSpine) {
  const Fabric fabric = build_clos({});
  Routing routing(fabric);
  const auto set = routing.paths(nic(fabric, "h1"), nic(fabric, "h5"));
  ASSERT_EQ(set.paths.size(), 4U);
  EXPECT_FALSE(set.truncated);
  for (const Path& path : set.paths) EXPECT_EQ(path.links.size(), 4U);
}

TEST(Routing, PathsJoinUpFromNicToNic) {
  const Fabric fabric = build_clos({});
  Routing routing(fabric);
  for (const Path& path : routing.paths(nic(fabric, "h2"), nic(fabric, "h8")).paths) {
    EXPECT_EQ(fabric.link(path.links.front()).from_port, nic(fabric, "h2"));
    EXPECT_EQ(fabric.link(path.links.back()).to_port, nic(fabric, "h8"));
    for (std::size_t i = 1; i < path.links.size(); ++i) {
      EXPECT_EQ(fabric.link(path.links[i - 1]).to, fabric.link(path.links[i]).from);
    }
  }
}

TEST(Routing, HasOnePathInsideALeaf) {
  const Fabric fabric = build_clos({});
  Routing routing(fabric);
  const auto set = routing.paths(nic(fabric, "h1"), nic(fabric, "h2"));
  ASSERT_EQ(set.paths.size(), 1U);
  EXPECT_EQ(set.paths[0].links.size(), 2U);
}

TEST(Routing, CountsParallelCablesAsPaths) {
  const Fabric fabric = build_clos({.spines = 2, .cables = 2});
  Routing routing(fabric);
  EXPECT_EQ(routing.paths(nic(fabric, "h1"), nic(fabric, "h5")).paths.size(), 8U);
}

TEST(Routing, SaysHowManyPathsThereAreBeyondTheLimit) {
  const Fabric fabric = build_clos({.spines = 8});
  Routing routing(fabric);
  const auto set = routing.paths(nic(fabric, "h1"), nic(fabric, "h5"), 3);
  EXPECT_EQ(set.paths.size(), 3U);
  EXPECT_TRUE(set.truncated);
  EXPECT_EQ(set.total, 8);
}

TEST(Routing, ListsNoPathForALimitOfNone) {
  const Fabric fabric = build_clos({});
  Routing routing(fabric);
  EXPECT_TRUE(routing.paths(nic(fabric, "h1"), nic(fabric, "h5"), 0).truncated);
}

TEST(Routing, LeavesOutADownLink) {
  Fabric fabric = build_clos({});
  Routing routing(fabric);
  ASSERT_EQ(routing.count_paths(nic(fabric, "h1"), nic(fabric, "h5")), 4);
  const LinkId down = link_from(fabric, "spine2", "leaf2");
  fabric.set_link_state(down, LinkState::kDown);
  for (const Path& path : routing.paths(nic(fabric, "h1"), nic(fabric, "h5")).paths) {
    EXPECT_EQ(std::count(path.links.begin(), path.links.end(), down), 0);
  }
  EXPECT_EQ(routing.count_paths(nic(fabric, "h1"), nic(fabric, "h5")), 3);
}

TEST(Routing, ADownLinkInOneDirectionLeavesTheOther) {
  Fabric fabric = build_clos({});
  Routing routing(fabric);
  fabric.set_link_state(link_from(fabric, "spine2", "leaf2"), LinkState::kDown);
  EXPECT_EQ(routing.count_paths(nic(fabric, "h5"), nic(fabric, "h1")), 4);
}

TEST(Routing, KeepsADrainedLinkSinceSwitchesDo) {
  Fabric fabric = build_clos({});
  Routing routing(fabric);
  fabric.set_link_state(link_from(fabric, "spine2", "leaf2"), LinkState::kDrained);
  EXPECT_EQ(routing.count_paths(nic(fabric, "h1"), nic(fabric, "h5")), 4);
}

TEST(Routing, HasNoPathFromADownNic) {
  Fabric fabric = build_clos({});
  Routing routing(fabric);
  fabric.set_link_state(link_from(fabric, "h1", "eth0"), LinkState::kDown);
  EXPECT_TRUE(routing.paths(nic(fabric, "h1"), nic(fabric, "h5")).paths.empty());
}

TEST(Routing, HasNoPathToADownNic) {
  Fabric fabric = build_clos({});
  Routing routing(fabric);
  fabric.set_link_state(link_from(fabric, "leaf2", "h5"), LinkState::kDown);
  EXPECT_EQ(routing.count_paths(nic(fabric, "h1"), nic(fabric, "h5")), 0);
}

TEST(Routing, NextLinksOfALeafAreItsUplinks) {
  const Fabric fabric = build_clos({});
  Routing routing(fabric);
  const auto next = routing.next_links(*fabric.find_node("leaf1"), nic(fabric, "h5"));
  ASSERT_EQ(next.size(), 4U);
  for (const LinkId link : next) EXPECT_EQ(fabric.node(fabric.link(link).to).kind, NodeKind::kSpine);
}

TEST(Routing, NextLinkOfTheLastLeafIsTheHost) {
  const Fabric fabric = build_clos({});
  Routing routing(fabric);
  const auto next = routing.next_links(*fabric.find_node("leaf2"), nic(fabric, "h5"));
  ASSERT_EQ(next.size(), 1U);
  EXPECT_EQ(next[0], link_from(fabric, "leaf2", "h5"));
}

PortId host_with_port(Fabric& fabric, const std::string& name) {
  return *fabric.add_port(*fabric.add_node(name, NodeKind::kHost), "eth0");
}

TEST(Routing, HostsNeverTransit) {
  Fabric fabric;
  const PortId a = host_with_port(fabric, "a");
  const PortId b = host_with_port(fabric, "b");
  const NodeId middle = *fabric.add_node("m", NodeKind::kHost);
  const NodeId leaf1 = *fabric.add_node("leaf1", NodeKind::kLeaf);
  const NodeId leaf2 = *fabric.add_node("leaf2", NodeKind::kLeaf);
  ASSERT_TRUE(fabric.connect(a, *fabric.add_port(leaf1, "a"), 1, LinkOrigin::kBuilder).ok());
  ASSERT_TRUE(fabric.connect(b, *fabric.add_port(leaf2, "b"), 1, LinkOrigin::kBuilder).ok());
  ASSERT_TRUE(
      fabric.connect(*fabric.add_port(middle, "1"), *fabric.add_port(leaf1, "m"), 1, LinkOrigin::kBuilder).ok());
  ASSERT_TRUE(
      fabric.connect(*fabric.add_port(middle, "2"), *fabric.add_port(leaf2, "m"), 1, LinkOrigin::kBuilder).ok());
  Routing routing(fabric);
  EXPECT_TRUE(routing.paths(a, b).paths.empty());
}

TEST(Routing, JoinsHostsBackToBack) {
  Fabric fabric;
  const PortId a = host_with_port(fabric, "a");
  const PortId b = host_with_port(fabric, "b");
  const LinkId cable = *fabric.connect(a, b, 1, LinkOrigin::kBuilder);
  Routing routing(fabric);
  const auto set = routing.paths(a, b);
  ASSERT_EQ(set.paths.size(), 1U);
  EXPECT_EQ(set.paths[0].links, std::vector<LinkId>{cable});
}

TEST(Routing, StartsAndEndsAtTheNicThatOwnsTheAddress) {
  Fabric fabric = build_clos({});
  const NodeId host = *fabric.find_node("h1");
  const PortId second = *fabric.add_port(host, "eth1");
  ASSERT_TRUE(
      fabric.connect(second, *fabric.add_port(*fabric.find_node("leaf2"), "h1"), 1e9, LinkOrigin::kBuilder).ok());
  Routing routing(fabric);
  EXPECT_EQ(routing.count_paths(second, nic(fabric, "h5")), 1);
  EXPECT_EQ(routing.count_paths(nic(fabric, "h1"), nic(fabric, "h5")), 4);
  EXPECT_EQ(routing.count_paths(nic(fabric, "h5"), second), 1);
}

TEST(Routing, HasNoPathBetweenTwoNicsOfOneHost) {
  Fabric fabric = build_clos({});
  const PortId second = *fabric.add_port(*fabric.find_node("h1"), "eth1");
  ASSERT_TRUE(
      fabric.connect(second, *fabric.add_port(*fabric.find_node("leaf2"), "h1"), 1e9, LinkOrigin::kBuilder).ok());
  Routing routing(fabric);
  EXPECT_EQ(routing.count_paths(nic(fabric, "h1"), second), 0);
}

}  // namespace
}  // namespace te
