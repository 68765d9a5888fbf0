// SPDX-License-Identifier: Apache-2.0
#include "host-agent/core/nic_port.h"

#include <gtest/gtest.h>

namespace te::agent {
namespace {

using netlink::LinkMessage;

LinkMessage interface(std::uint32_t ifindex, const std::string& name, const std::string& kind = "",
                      std::uint32_t lower = 0) {
  LinkMessage made;
  made.ifindex = ifindex;
  made.name = name;
  made.kind = kind;
  made.lower = lower;
  made.up = true;
  made.carrier = true;
  made.mtu_bytes = 4200;
  return made;
}

NicAddress at(const std::string& address, std::uint32_t ifindex) { return {*IpAddress::parse(address), ifindex}; }

std::vector<NicPort> ports(std::initializer_list<NicName> names) {
  std::vector<NicPort> all;
  for (const NicName& name : names) all.emplace_back().name = name;
  return all;
}

TEST(NicPort, HasTheAddressesOfItsInterface) {
  auto all = ports({{.interface = "eth0"}, {.interface = "eth1"}});
  fill_ports("", std::vector{interface(1, "lo"), interface(2, "eth0"), interface(3, "eth1")},
             std::vector{at("127.0.0.1", 1), at("10.0.0.1", 2), at("fd00::1", 2), at("10.0.0.2", 3)}, all);
  EXPECT_EQ(all[0].ifindex, 2U);
  EXPECT_EQ(all[0].mtu_bytes, 4200U);
  EXPECT_TRUE(all[0].up);
  EXPECT_EQ(all[0].addresses, (std::vector{at("10.0.0.1", 2), at("fd00::1", 2)}));
  EXPECT_EQ(all[1].addresses, (std::vector{at("10.0.0.2", 3)}));
}

TEST(NicPort, HasTheAddressesOfWhatIsStackedOnItEachWithItsOwnIndex) {
  auto all = ports({{.interface = "eth0"}});
  fill_ports("",
             std::vector{interface(2, "eth0"), interface(3, "eth0.100", "vlan", 2), interface(4, "q", "vlan", 3),
                         interface(5, "m", "macvlan", 4), interface(6, "i", "ipvlan", 2),
                         interface(7, "eth1.9", "vlan", 8), interface(8, "eth1")},
             std::vector{at("10.0.0.3", 3), at("10.0.0.4", 4), at("10.0.0.5", 5), at("10.0.0.6", 6), at("10.0.0.7", 7)},
             all);
  EXPECT_EQ(all[0].addresses,
            (std::vector{at("10.0.0.3", 3), at("10.0.0.4", 4), at("10.0.0.5", 5), at("10.0.0.6", 6)}));
  EXPECT_EQ(all[0].sends_by, "");
}

TEST(NicPort, APeerIsNotBelow) {
  auto all = ports({{.interface = "veth0"}});
  fill_ports("", std::vector{interface(2, "veth0", "veth", 3), interface(3, "veth1", "veth", 2)},
             std::vector{at("10.0.0.3", 3)}, all);
  EXPECT_TRUE(all[0].addresses.empty());
}

TEST(NicPort, OfTwoListedTheLowerOneHasTheAddresses) {
  auto all = ports({{.interface = "eth0.100"}, {.interface = "eth0"}});
  fill_ports("", std::vector{interface(2, "eth0"), interface(3, "eth0.100", "vlan", 2)}, std::vector{at("10.0.0.3", 3)},
             all);
  EXPECT_EQ(all[0].sends_by, "eth0");
  EXPECT_EQ(all[0].ifindex, 3U);
  EXPECT_TRUE(all[0].addresses.empty());
  EXPECT_EQ(all[1].addresses, (std::vector{at("10.0.0.3", 3)}));
}

TEST(NicPort, OnlyTheVlanIsListed) {
  auto all = ports({{.interface = "eth0.100"}});
  fill_ports("", std::vector{interface(2, "eth0"), interface(3, "eth0.100", "vlan", 2)},
             std::vector{at("10.0.0.2", 2), at("10.0.0.3", 3)}, all);
  EXPECT_EQ(all[0].sends_by, "");
  EXPECT_EQ(all[0].addresses, (std::vector{at("10.0.0.3", 3)}));
}

TEST(NicPort, WithoutItsInterfaceDoesNotExist) {
  auto all = ports({{.interface = "eth0"}});
  fill_ports("", std::vector{interface(2, "eth0")}, std::vector{at("10.0.0.2", 2)}, all);
  fill_ports("", std::vector{interface(3, "eth1")}, std::vector{at("10.0.0.2", 3)}, all);
  EXPECT_EQ(all, ports({{.interface = "eth0"}}));
}

TEST(NicPort, OfOtherNamespacesStaysAsItIs) {
  auto all = ports({{.interface = "eth0", .netns = "/run/netns/a"}, {.interface = "eth0", .netns = "/run/netns/b"}});
  fill_ports("/run/netns/a", std::vector{interface(2, "eth0")}, std::vector{at("10.0.0.2", 2)}, all);
  EXPECT_EQ(all[0].ifindex, 2U);
  EXPECT_EQ(all[1].ifindex, 0U);
}

TEST(NicPort, ARingOfInterfacesIsNoEndlessWalk) {
  auto all = ports({{.interface = "eth0"}});
  fill_ports("", std::vector{interface(2, "eth0"), interface(3, "a", "vlan", 4), interface(4, "b", "vlan", 3)},
             std::vector{at("10.0.0.2", 3)}, all);
  EXPECT_TRUE(all[0].addresses.empty());
}

}  // namespace
}  // namespace te::agent
