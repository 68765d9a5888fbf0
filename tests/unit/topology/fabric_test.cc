// SPDX-License-Identifier: Apache-2.0
#include "topology/fabric.h"

#include <gtest/gtest.h>

#include "topology/builder.h"

namespace te {
namespace {

class FabricTest : public ::testing::Test {
 protected:
  Fabric fabric;
  NodeId host = *fabric.add_node("h1", NodeKind::kHost);
  NodeId leaf = *fabric.add_node("leaf1", NodeKind::kLeaf);
  PortId nic = *fabric.add_port(host, "eth0");
  PortId down = *fabric.add_port(leaf, "h1");
};

TEST_F(FabricTest, FindsNodesPortsAndAddresses) {
  const auto address = *IpAddress::parse("10.0.0.1");
  ASSERT_TRUE(fabric.add_address(nic, address).ok());
  EXPECT_EQ(fabric.find_node("leaf1"), leaf);
  EXPECT_EQ(fabric.find_port(leaf, "h1"), down);
  EXPECT_EQ(fabric.find_address(address), nic);
}

TEST_F(FabricTest, DoesNotFindWhatIsNotThere) {
  EXPECT_FALSE(fabric.find_node("leaf2"));
  EXPECT_FALSE(fabric.find_port(leaf, "h2"));
  EXPECT_FALSE(fabric.find_address(*IpAddress::parse("10.0.0.9")));
}

TEST_F(FabricTest, RefusesASecondNodeOfOneName) {
  EXPECT_EQ(fabric.add_node("h1", NodeKind::kHost).error().message, "there is already a node 'h1'");
}

TEST_F(FabricTest, RefusesANodeWithoutName) { EXPECT_FALSE(fabric.add_node("", NodeKind::kHost).ok()); }

TEST_F(FabricTest, RefusesASecondPortOfOneName) { EXPECT_FALSE(fabric.add_port(host, "eth0").ok()); }

TEST_F(FabricTest, GivesOnePortManyAddresses) {
  ASSERT_TRUE(fabric.add_address(nic, *IpAddress::parse("10.0.0.1")).ok());
  ASSERT_TRUE(fabric.add_address(nic, *IpAddress::parse("fd00::1")).ok());
  EXPECT_EQ(fabric.port(nic).addresses.size(), 2U);
}

TEST_F(FabricTest, NamesThePortThatHasAnAddressAlready) {
  const auto address = *IpAddress::parse("10.0.0.1");
  ASSERT_TRUE(fabric.add_address(nic, address).ok());
  EXPECT_EQ(fabric.add_address(down, address).error().message, "address 10.0.0.1 already belongs to h1:eth0");
}

TEST_F(FabricTest, ACableIsTwoLinksThatKnowEachOther) {
  const LinkId forth = *fabric.connect(nic, down, 1e9, LinkOrigin::kFile);
  const LinkId back = fabric.link(forth).reverse;
  EXPECT_EQ(fabric.link(back).reverse, forth);
  EXPECT_EQ(fabric.link(back).from, leaf);
  EXPECT_EQ(fabric.port(nic).out, forth);
  EXPECT_EQ(fabric.port(nic).in, back);
  EXPECT_EQ(fabric.link_name(forth), "h1:eth0 -> leaf1:h1");
}

TEST_F(FabricTest, RefusesALinkOfANodeWithItself) {
  const PortId other = *fabric.add_port(host, "eth1");
  EXPECT_FALSE(fabric.connect(nic, other, 1e9, LinkOrigin::kFile).ok());
}

TEST_F(FabricTest, RefusesASecondLinkOnAPort) {
  ASSERT_TRUE(fabric.connect(nic, down, 1e9, LinkOrigin::kFile).ok());
  const PortId other = *fabric.add_port(leaf, "h2");
  EXPECT_NE(fabric.connect(nic, other, 1e9, LinkOrigin::kFile).error().message.find("h1:eth0"), std::string::npos);
}

TEST_F(FabricTest, RefusesACapacityThatIsNotPositive) {
  EXPECT_FALSE(fabric.connect(nic, down, 0, LinkOrigin::kFile).ok());
  EXPECT_FALSE(fabric.connect(nic, down, -1, LinkOrigin::kFile).ok());
}

TEST_F(FabricTest, OnlyGoingDownOrUpChangesPaths) {
  const LinkId link = *fabric.connect(nic, down, 1e9, LinkOrigin::kFile);
  const auto before = fabric.path_version();
  EXPECT_TRUE(fabric.set_link_state(link, LinkState::kDrained));
  EXPECT_EQ(fabric.path_version(), before);
  EXPECT_TRUE(fabric.set_link_state(link, LinkState::kDown));
  EXPECT_GT(fabric.path_version(), before);
}

TEST_F(FabricTest, SettingTheSameStateChangesNothing) {
  const LinkId link = *fabric.connect(nic, down, 1e9, LinkOrigin::kFile);
  EXPECT_FALSE(fabric.set_link_state(link, LinkState::kHealthy));
}

TEST(Builder, MakesAClosOfTheGivenSize) {
  const Fabric fabric = build_clos({.leaves = 3, .hosts_per_leaf = 4, .spines = 2, .cables = 2});
  EXPECT_EQ(fabric.nodes().size(), 3U * 5 + 2);
  EXPECT_EQ(fabric.links().size(), 2U * (3 * 4 + 3 * 2 * 2));
}

TEST(Builder, NumbersHostsOverAllLeaves) {
  const Fabric fabric = build_clos({.leaves = 2, .hosts_per_leaf = 4});
  const auto port = fabric.find_address(*IpAddress::parse("10.2.1.2"));
  ASSERT_TRUE(port);
  EXPECT_EQ(fabric.port_name(*port), "h5:eth0");
}

TEST(Builder, GivesHostsAndUplinksTheirRates) {
  const Fabric fabric = build_clos({.host_bps = 1e9, .uplink_bps = 2e9});
  for (const Link& link : fabric.links()) {
    const bool host = fabric.node(link.from).is_host() || fabric.node(link.to).is_host();
    EXPECT_EQ(link.capacity_bps, host ? 1e9 : 2e9);
  }
}

}  // namespace
}  // namespace te
