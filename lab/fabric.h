// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>
#include <cstdint>
#include <string>
#include <vector>

#include "common/base/ip_address.h"
#include "lab/spec.h"

namespace te::lab {

enum class NodeKind : std::uint8_t { kHost, kLeaf, kSpine };

struct Node {
  std::string name;  ///< h1.., leaf1.., spine1..
  NodeKind kind = NodeKind::kHost;
  std::string netns;            ///< te-ID-NAME: has mgmt0, and the agent runs here
  std::string fabric_netns;     ///< of its fabric ports: the same, or te-ID-NAME-nic
  IpAddress management;         ///< address of mgmt0, of the fabric's family
  std::uint32_t hash_seed = 0;  ///< switches: of the ECMP hash; never 0
};

/// One end of a link.
struct Port {
  std::size_t node = 0;  ///< index into Fabric::nodes
  std::string name;      ///< interface name
  std::string ip_name;   ///< of the interface that has the address: the same, or a NIC's VLAN
  std::string mac;
  IpAddress address;
};

struct Link {
  Port a;                 ///< the host, or the leaf of a leaf-spine link
  Port b;                 ///< the leaf, or the spine
  int prefix_length = 0;  ///< of both addresses
};

/// A destination behind several next hops (one: a plain route).
struct Route {
  std::string prefix;                                          ///< ADDRESS/LENGTH
  std::vector<std::pair<std::string, std::string>> next_hops;  ///< gateway address, interface
};

/// Everything that `up` makes, as values: a function of the spec alone.
struct Fabric {
  Spec spec;
  std::vector<Node> nodes;       ///< hosts, leaves, spines
  std::vector<Link> links;       ///< host by host, NIC by NIC, then leaf by leaf
  std::string management_netns;  ///< te-ID-mgmt: the bridge, and the controller's address
  IpAddress controller;          ///< the controller's, in that namespace
  std::string cables_netns;      ///< te-ID-cables: what lies between the two ends of every link
  [[nodiscard]] bool is_v6() const { return spec.family == IpAddress::Family::kV6; }
};

inline constexpr const char* kManagementInterface = "mgmt0";
[[nodiscard]] int management_prefix_length(const Fabric& fabric);

[[nodiscard]] Fabric lay_out(const Spec& spec);
[[nodiscard]] std::vector<Route> routes_of(const Fabric& fabric, std::size_t node);
[[nodiscard]] const char* kind_name(NodeKind kind);
/// Interface in the cables' namespace that stands for link `link`.
[[nodiscard]] std::string cable_name(std::size_t link);
/// Index of the node called `name`, or nodes.size().
[[nodiscard]] std::size_t find_node(const Fabric& fabric, const std::string& name);
/// Index of the link of NIC `nic` of host `host` (both 0-based).
[[nodiscard]] std::size_t host_link(const Fabric& fabric, std::size_t host, std::size_t nic = 0);
/// Its fabric address.
[[nodiscard]] const IpAddress& host_address(const Fabric& fabric, std::size_t host, std::size_t nic = 0);
/// "te-ID-": what the names of all namespaces of a lab begin with.
[[nodiscard]] std::string netns_prefix(const std::string& id);

}  // namespace te::lab
