// SPDX-License-Identifier: Apache-2.0
#include "lab/fabric.h"

#include <gtest/gtest.h>

#include <set>
#include <sstream>

#include "lab/commands.h"

namespace te::lab {
namespace {

Spec spec_of(int hosts, int leaves, int spines) {
  Spec spec;
  spec.id = "x";
  spec.hosts = hosts;
  spec.leaves = leaves;
  spec.spines = spines;
  return *checked(spec);
}

TEST(Fabric, AttachesHostsToLeavesRoundRobin) {
  const Fabric fabric = lay_out(spec_of(5, 2, 1));
  for (std::size_t host = 0; host < 5; ++host) {
    EXPECT_EQ(fabric.nodes[fabric.links[host].b.node].name, host % 2 == 0 ? "leaf1" : "leaf2");
  }
}

TEST(Fabric, NicsMayBeInANamespaceOfTheirOwn) {
  Spec spec = spec_of(2, 1, 1);
  spec.nic_netns = true;
  const Fabric fabric = lay_out(spec);
  EXPECT_EQ(fabric.nodes[0].netns, "te-x-h1");
  EXPECT_EQ(fabric.nodes[0].fabric_netns, "te-x-h1-nic");
  EXPECT_EQ(fabric.nodes[2].fabric_netns, fabric.nodes[2].netns) << "a switch";
  EXPECT_NE(namespace_batch(fabric).find("netns add te-x-h2-nic\n"), std::string::npos);
  const std::string links = link_batch(fabric);
  EXPECT_NE(links.find("netns te-x-h1-nic"), std::string::npos);
  EXPECT_NE(links.find(" netns te-x-h1 type veth peer name h1 "), std::string::npos) << links;
}

TEST(Fabric, AddressesOfTaggedNicsAreOnTheirVlans) {
  Spec spec = spec_of(2, 1, 1);
  spec.vlans = {100, 200};
  const Fabric fabric = lay_out(spec);
  EXPECT_EQ(fabric.links[0].a.name, "eth0");
  EXPECT_EQ(vlan_interfaces(fabric, 0), (std::vector<std::string>{"eth0.100.200"}));
  EXPECT_TRUE(vlan_interfaces(fabric, 2).empty()) << "a switch";
  const std::string host = node_ip_batch(fabric, 0);
  EXPECT_NE(host.find("link add link eth0 name eth0.100.200 type macvlan"), std::string::npos) << host;
  EXPECT_NE(host.find("addr add 10.1.1.2/24 dev eth0.100.200\n"), std::string::npos) << host;
  EXPECT_NE(host.find("via 10.1.1.1 dev eth0.100.200\n"), std::string::npos) << host;
  EXPECT_EQ(node_ip_batch(fabric, 2).find("eth0"), std::string::npos);
}

Spec rails_of(int hosts, int nics, int leaves) {
  Spec spec = spec_of(hosts, leaves, 2);
  spec.nics = nics;
  return *checked(spec);
}

TEST(Fabric, AttachesEachNicOfAHostToItsOwnLeafOfTheHostsGroup) {
  const Fabric fabric = lay_out(rails_of(4, 2, 4));
  const auto leaf_of = [&](std::size_t host, std::size_t nic) {
    const Link& link = fabric.links[host_link(fabric, host, nic)];
    EXPECT_EQ(link.a.node, host);
    EXPECT_EQ(link.a.name, "eth" + std::to_string(nic));
    return fabric.nodes[link.b.node].name;
  };
  for (const std::size_t host : {0U, 2U}) {
    EXPECT_EQ(leaf_of(host, 0), "leaf1");
    EXPECT_EQ(leaf_of(host, 1), "leaf2");
    EXPECT_EQ(leaf_of(host + 1, 0), "leaf3");
    EXPECT_EQ(leaf_of(host + 1, 1), "leaf4");
  }
}

TEST(Fabric, GivesEveryNicAnAddressOfItsLeafsPrefix) {
  const Fabric fabric = lay_out(rails_of(8, 4, 4));
  std::set<std::string> addresses;
  for (std::size_t host = 0; host < 8; ++host) {
    for (std::size_t nic = 0; nic < 4; ++nic) addresses.insert(host_address(fabric, host, nic).to_string());
  }
  EXPECT_EQ(addresses.size(), 32U);
  EXPECT_EQ(host_address(fabric, 7, 2).to_string(), "10.3.8.2");
}

TEST(Fabric, LinksEveryLeafToEverySpineOnce) {
  const Fabric fabric = lay_out(spec_of(2, 3, 4));
  std::set<std::pair<std::string, std::string>> pairs;
  for (std::size_t link = 2; link < fabric.links.size(); ++link) {
    pairs.emplace(fabric.nodes[fabric.links[link].a.node].name, fabric.nodes[fabric.links[link].b.node].name);
  }
  EXPECT_EQ(fabric.links.size(), 2U + 12U);
  EXPECT_EQ(pairs.size(), 12U);
}

TEST(Fabric, GivesEveryPortAnAddressAndAMacOfItsOwn) {
  for (const auto family : {IpAddress::Family::kV4, IpAddress::Family::kV6}) {
    Spec spec = spec_of(20, 4, 8);
    spec.family = family;
    const Fabric fabric = lay_out(spec);
    std::set<std::string> addresses;
    std::set<std::string> macs;
    for (const Link& link : fabric.links) {
      for (const Port* port : {&link.a, &link.b}) {
        addresses.insert(port->address.to_string());
        macs.insert(port->mac);
      }
    }
    EXPECT_EQ(addresses.size(), 2 * fabric.links.size());
    EXPECT_EQ(macs.size(), 2 * fabric.links.size());
  }
}

TEST(Fabric, GivesEveryNodeAManagementAddressOfItsOwn) {
  for (const auto family : {IpAddress::Family::kV4, IpAddress::Family::kV6}) {
    Spec spec = spec_of(600, 4, 8);
    spec.family = family;
    const Fabric fabric = lay_out(spec);
    std::set<std::string> addresses{fabric.controller.to_string()};
    for (const Node& node : fabric.nodes) {
      addresses.insert(node.management.to_string());
      EXPECT_EQ(node.management.family(), family);
    }
    EXPECT_EQ(addresses.size(), fabric.nodes.size() + 1);
    EXPECT_EQ(fabric.nodes[0].management.to_string(), family == IpAddress::Family::kV6 ? "fd00:ff::11" : "10.255.0.11");
  }
}

TEST(Fabric, TakesHashSeedsFromTheSeedAndNeverZero) {
  Spec spec = spec_of(2, 2, 2);
  const Fabric one = lay_out(spec);
  const Fabric again = lay_out(spec);
  spec.seed = 2;
  const Fabric other = lay_out(spec);
  EXPECT_EQ(one.nodes[2].hash_seed, again.nodes[2].hash_seed);
  EXPECT_NE(one.nodes[2].hash_seed, other.nodes[2].hash_seed);
  EXPECT_NE(one.nodes[2].hash_seed, one.nodes[3].hash_seed);
  EXPECT_NE(one.nodes[2].hash_seed, 0U);
}

TEST(Routes, ALeafSpreadsOtherLeavesOverAllSpines) {
  const Fabric fabric = lay_out(spec_of(3, 3, 4));
  const auto routes = routes_of(fabric, find_node(fabric, "leaf1"));
  ASSERT_EQ(routes.size(), 2U);
  EXPECT_EQ(routes[0].prefix, "10.2.0.0/16");
  EXPECT_EQ(routes[0].next_hops.size(), 4U);
}

TEST(Routes, ASpineHasOneWayToEachLeaf) {
  const Fabric fabric = lay_out(spec_of(3, 3, 2));
  const auto routes = routes_of(fabric, find_node(fabric, "spine2"));
  ASSERT_EQ(routes.size(), 3U);
  for (const Route& route : routes) EXPECT_EQ(route.next_hops.size(), 1U);
}

TEST(Commands, ShapeEveryPortOfASwitchAndNoneOfAHost) {
  const Fabric fabric = lay_out(spec_of(4, 2, 2));
  EXPECT_TRUE(node_tc_batch(fabric, find_node(fabric, "h1")).empty());
  const std::string batch = node_tc_batch(fabric, find_node(fabric, "leaf1"));
  for (const char* port : {" h1 ", " h3 ", " spine1 ", " spine2 "})
    EXPECT_NE(batch.find(port), std::string::npos) << port;
}

TEST(Commands, RouteByTheSourceAddressWhereAHostHasSeveralNics) {
  const Fabric fabric = lay_out(rails_of(2, 2, 2));
  EXPECT_EQ(source_routing_batch(fabric, 1),
            "route add default via 10.1.2.1 dev eth0 table 100\nrule add pref 100 from 10.1.2.2 lookup 100\n"
            "route add default via 10.2.2.1 dev eth1 table 101\nrule add pref 101 from 10.2.2.2 lookup 101\n");
  EXPECT_TRUE(source_routing_batch(fabric, find_node(fabric, "leaf1")).empty());
  EXPECT_TRUE(source_routing_batch(lay_out(spec_of(2, 2, 2)), 0).empty());
}

TEST(Commands, MakeEachCableOfThreeInterfacesWithAnIndexOfTheirOwn) {
  const Fabric fabric = lay_out(spec_of(4, 2, 2));
  std::istringstream batch(link_batch(fabric));
  std::set<std::string> indices;
  std::size_t interfaces = 0;
  std::size_t macvlans = 0;
  for (std::string word; batch >> word;) {
    if (word == "macvlan") ++macvlans;
    if (word != "index") continue;
    ASSERT_TRUE(batch >> word);
    indices.insert(word);
    ++interfaces;
  }
  EXPECT_EQ(macvlans, fabric.links.size());
  EXPECT_EQ(interfaces, 3 * fabric.links.size() + 2 * fabric.nodes.size());
  EXPECT_EQ(indices.size(), interfaces);
}

TEST(Commands, PutTheEndsOfACableIntoTheirNodesNamespaces) {
  const Fabric fabric = lay_out(spec_of(1, 1, 1));
  const std::string batch = link_batch(fabric);
  EXPECT_NE(batch.find("link add name c2 index 5 address 02:7e:00:00:01:0b mtu 4500 numtxqueues 1 numrxqueues 1 "
                       "type veth peer name spine1 index 6 address 02:7e:00:00:01:0a mtu 4500 numtxqueues 1 "
                       "numrxqueues 1 netns te-x-leaf1\n"
                       "link add link c2 name leaf1 index 7 netns te-x-spine1 type macvlan mode passthru nopromisc\n"
                       "link set c2 up\n"),
            std::string::npos)
      << batch;
}

TEST(Commands, GiveAPortAnotherRateAndItsOwnBack) {
  const Fabric fabric = lay_out(spec_of(2, 2, 1));
  const Port& leaf = fabric.links[0].b;
  const Port& host = fabric.links[0].a;
  EXPECT_EQ(port_rate_batch(fabric, leaf, 1e7),
            "qdisc replace dev h1 root tbf rate 10000000bit burst 9028b limit 8388608b\n");
  EXPECT_EQ(port_rate_batch(fabric, leaf, fabric.spec.rate_bps),
            "qdisc replace dev h1 root tbf rate 50000000bit burst 9028b limit 8388608b\n");
  EXPECT_EQ(port_rate_batch(fabric, host, 1e7),
            "qdisc replace dev eth0 root tbf rate 10000000bit burst 9028b limit 8388608b\n");
  EXPECT_EQ(port_rate_batch(fabric, host, fabric.spec.rate_bps), "qdisc replace dev eth0 root noqueue\n");
}

}  // namespace
}  // namespace te::lab
