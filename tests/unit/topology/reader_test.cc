// SPDX-License-Identifier: Apache-2.0
#include "topology/reader.h"

#include <gtest/gtest.h>

#include <string>

namespace te {
namespace {

const std::string kGood = R"(version: 1
nodes:
  - {name: h1, kind: host}
  - {name: h2, kind: host}
  - {name: leaf1, kind: leaf}
links:
  - {a: {node: h1, port: eth0, addresses: [10.1.1.2, "fd00::2"]}, b: {node: leaf1, port: h1, addresses: [10.1.1.1]}, capacity: 50mbit}
  - {a: {node: leaf1, port: h2}, b: {node: h2, port: eth0, addresses: [10.1.2.2]}, capacity: 400gbit}
)";

/// kGood with the first `from` replaced.
std::string with(const std::string& from, const std::string& to) {
  std::string text = kGood;
  const auto at = text.find(from);
  EXPECT_NE(at, std::string::npos) << from;
  return text.replace(at, from.size(), to);
}

std::string error_of(const std::string& text) {
  const auto fabric = read_fabric_yaml(text, "topo.yaml");
  return fabric.ok() ? "no error" : fabric.error().message;
}

TEST(TopologyReader, ReadsNodesLinksRatesAndAddresses) {
  const auto fabric = read_fabric_yaml(kGood, "topo.yaml");
  ASSERT_TRUE(fabric.ok()) << fabric.error().message;
  EXPECT_EQ(fabric->nodes().size(), 3U);
  ASSERT_EQ(fabric->links().size(), 4U);
  EXPECT_EQ(fabric->link(0).capacity_bps, 50e6);
  EXPECT_EQ(fabric->link(2).capacity_bps, 400e9);
  EXPECT_EQ(fabric->link(0).origin, LinkOrigin::kFile);
  EXPECT_EQ(fabric->find_address(*IpAddress::parse("fd00::2")), fabric->find_address(*IpAddress::parse("10.1.1.2")));
}

struct BadFile {
  const char* name;
  const char* from;
  const char* to;
  const char* expected;  ///< part of the message
};

class BadTopology : public ::testing::TestWithParam<BadFile> {};

TEST_P(BadTopology, IsRefusedWithFileLineAndReason) {
  const std::string message = error_of(with(GetParam().from, GetParam().to));
  EXPECT_EQ(message.rfind("topo.yaml:", 0), 0U) << message;
  EXPECT_NE(message.find(GetParam().expected), std::string::npos) << message;
}

INSTANTIATE_TEST_SUITE_P(
    Rows, BadTopology,
    ::testing::Values(
        BadFile{"OtherVersion", "version: 1", "version: 2", ":1: version"},
        BadFile{"NoVersion", "version: 1", "", "'version' is missing"},
        BadFile{"UnknownKey", "version: 1", "version: 1\ncolour: red", ":2: unknown key 'colour'"},
        BadFile{"NotYaml", "nodes:", "nodes: [", "not YAML"},
        BadFile{"DuplicateNode", "name: h2", "name: h1", ":4: nodes[1]: there is already a node 'h1'"},
        BadFile{"UnknownKind", "kind: leaf", "kind: router", ":5: nodes[2]: expected kind host, leaf, spine or core"},
        BadFile{"NodeWithoutKind", "h2, kind: host", "h2", "'kind' is missing"},
        BadFile{"UnknownNode", "node: h1", "node: h9", ":7: links[0].a: there is no node 'h9'"},
        BadFile{"PortUsedTwice", "port: h2", "port: h1", ":8: links[1].a: port leaf1:h1 is used by two links"},
        BadFile{"AddressUsedTwice", "10.1.2.2", "10.1.1.1",
                ":8: links[1].b.addresses[0]: address 10.1.1.1 already belongs to leaf1:h1"},
        BadFile{"NotAnAddress", "10.1.2.2", "10.1.2", "'10.1.2' is not an IPv4 or IPv6 address"},
        BadFile{"BadRate", "50mbit", "fast", ":7: links[0]: capacity: 'fast' is not a rate"},
        BadFile{"ZeroRate", "50mbit", "0mbit", "'0mbit' is not a rate"},
        BadFile{"NoRate", ", capacity: 50mbit", "", "'capacity' is missing"},
        BadFile{"SelfLink", "b: {node: leaf1, port: h1,", "b: {node: h1, port: eth1,", "joins two different nodes"},
        BadFile{"HostNotConnected", "{node: h2, port: eth0, addresses: [10.1.2.2]}", "{node: leaf1, port: x}",
                "different nodes"},
        BadFile{"LonelyHost", "  - {name: leaf1", "  - {name: h3, kind: host}\n  - {name: leaf1",
                ":5: nodes[2]: host 'h3' has no link"},
        BadFile{"HostWithoutAddress", ", addresses: [10.1.2.2]", "",
                ":4: nodes[1]: port h2:eth0 of a host needs at least one address"}),
    [](const auto& row) { return std::string(row.param.name); });

TEST(TopologyReader, RefusesAFileWithoutNodes) {
  EXPECT_NE(error_of("version: 1\n").find("'nodes' is missing"), std::string::npos);
}

}  // namespace
}  // namespace te
