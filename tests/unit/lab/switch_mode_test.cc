// SPDX-License-Identifier: Apache-2.0
#include "lab/switch_mode.h"

#include <gtest/gtest.h>

#include <set>

namespace te::lab {
namespace {

Fabric fabric_of(int leaves, int spines, IpAddress::Family family = IpAddress::Family::kV4) {
  Spec spec;
  spec.id = "x";
  spec.hosts = 2;
  spec.leaves = leaves;
  spec.spines = spines;
  spec.family = family;
  return lay_out(*checked(spec));
}

std::size_t count(const std::string& text, const std::string& word) {
  std::size_t found = 0;
  for (auto at = text.find(word); at != std::string::npos; at = text.find(word, at + 1)) ++found;
  return found;
}

TEST(SwitchMode, HasANameThatIsReadBack) {
  const auto names = mode_names();
  EXPECT_EQ(names.size(), 5U);
  for (const std::string& name : names) EXPECT_EQ(mode_name(*parse_mode(name)), name);
}

TEST(SwitchMode, ListsTheModesWhenOneIsUnknown) {
  const auto mode = parse_mode("quiet");
  ASSERT_FALSE(mode.ok());
  for (const std::string& name : mode_names()) EXPECT_NE(mode.error().message.find(name), std::string::npos);
}

TEST(SwitchMode, NeitherNormalNorSilentChangesRoutes) {
  const Fabric fabric = fabric_of(2, 2);
  for (const auto mode : {SwitchMode::kNormal, SwitchMode::kSilent}) {
    EXPECT_TRUE(mode_batch(fabric, find_node(fabric, "leaf1"), mode).empty());
    EXPECT_TRUE(mode_undo_batch(fabric, find_node(fabric, "leaf1"), mode).empty());
  }
}

TEST(SwitchMode, AChoiceHasOneTableForEachUplinkWithEveryOtherLeaf) {
  const Fabric fabric = fabric_of(3, 4);
  const std::size_t leaf = find_node(fabric, "leaf2");
  EXPECT_EQ(equal_cost_ports(fabric, leaf), 4U);
  EXPECT_EQ(equal_cost_ports(fabric, find_node(fabric, "spine1")), 1U);
  const std::string batch = mode_batch(fabric, leaf, SwitchMode::kQpnHash);
  EXPECT_EQ(batch, mode_batch(fabric, leaf, SwitchMode::kSpray));
  EXPECT_EQ(count(batch, "route add "), 2U * 4U);
  EXPECT_NE(batch.find("route add 10.3.0.0/16 via 10.102.4.1 dev spine4 table 1004\n"), std::string::npos) << batch;
  EXPECT_NE(batch.find("rule add pref 1004 fwmark 4 lookup 1004\n"), std::string::npos) << batch;
  EXPECT_EQ(count(batch, "rule add "), 4U);
}

TEST(SwitchMode, LoopbackAnswersHaveAnAddressOfEachSwitchAndOfNoPort) {
  for (const auto family : {IpAddress::Family::kV4, IpAddress::Family::kV6}) {
    const Fabric fabric = fabric_of(99, 250, family);
    std::set<std::string> addresses;
    for (const Link& link : fabric.links) {
      addresses.insert(link.a.address.to_string());
      addresses.insert(link.b.address.to_string());
    }
    const std::size_t ports = addresses.size();
    for (std::size_t node = 2; node < fabric.nodes.size(); ++node) addresses.insert(loopback_address(fabric, node));
    EXPECT_EQ(addresses.size(), ports + 99 + 250);
  }
}

TEST(SwitchMode, LoopbackAnswersLeaveByTheRoutesOfTheSwitch) {
  const Fabric fabric = fabric_of(2, 2, IpAddress::Family::kV6);
  const std::string batch = mode_batch(fabric, find_node(fabric, "leaf1"), SwitchMode::kLoopbackAnswers);
  EXPECT_NE(batch.find("addr add fd00:fe::1/128 dev lo nodad\n"), std::string::npos) << batch;
  EXPECT_NE(batch.find("route add fd00:1:1:1::2/128 dev h1 src fd00:fe::1 table 1000\n"), std::string::npos) << batch;
  EXPECT_NE(batch.find("route add fd00:1:2::/48 src fd00:fe::1 table 1000 nexthop via fd00:2:1:1::3 dev spine1 "
                       "nexthop via fd00:2:1:2::3 dev spine2\n"),
            std::string::npos)
      << batch;
  EXPECT_EQ(mode_sysctls(SwitchMode::kLoopbackAnswers)[0].value, "0");
  EXPECT_EQ(mode_sysctls(SwitchMode::kNormal)[0].value, "1");
}

TEST(SwitchMode, WhatAModeAddsItsUndoingRemoves) {
  const Fabric fabric = fabric_of(2, 3);
  const std::size_t leaf = find_node(fabric, "leaf1");
  for (const std::string& name : mode_names()) {
    const SwitchMode mode = *parse_mode(name);
    const std::string added = mode_batch(fabric, leaf, mode);
    const std::string removed = mode_undo_batch(fabric, leaf, mode);
    EXPECT_EQ(count(added, "rule add "), count(removed, "rule del ")) << name;
    EXPECT_EQ(count(added, "rule add "), count(removed, "route flush table ")) << name;
    EXPECT_EQ(count(added, "addr add "), count(removed, "addr del ")) << name;
  }
}

}  // namespace
}  // namespace te::lab
