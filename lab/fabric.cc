// SPDX-License-Identifier: Apache-2.0
#include "lab/fabric.h"

#include <fmt/format.h>

#include "lab/mix.h"

namespace te::lab {
namespace {

constexpr std::size_t kControllerNumber = 1;        // 10.255.0.1, fd00:ff::1
constexpr std::size_t kFirstHostNumber = 10;        // 10.255.0.(10+i), fd00:ff::(10+i), digits as they are
constexpr std::size_t kFirstSwitchNumber = 0x8000;  // 10.255.128.n, fd00:ff::128:n

IpAddress must_parse(const std::string& text) {
  auto address = IpAddress::parse(text);
  TE_CHECK(address.ok(), "address of the lab's plan: " + text);
  return *address;
}

IpAddress management_address(bool v6, std::size_t number) {
  return must_parse(fmt::format("{}{}{}{}", v6 ? "fd00:ff::" : "10.255.", number >> 8, v6 ? ":" : ".", number & 0xFF));
}

std::string mac_of(std::size_t link, int end) {
  return fmt::format("02:7e:00:{:02x}:{:02x}:{:02x}", (link >> 8) & 0xFF, link & 0xFF, end);
}

std::string host_prefix(bool v6, std::size_t leaf) {
  return v6 ? fmt::format("fd00:1:{:x}::/48", leaf) : fmt::format("10.{}.0.0/16", leaf);
}

/// `end` 1: the leaf, 2: the host.
IpAddress host_link_address(bool v6, std::size_t leaf, std::size_t slot, int end) {
  return must_parse(v6 ? fmt::format("fd00:1:{:x}:{:x}::{:x}", leaf, slot, end)
                       : fmt::format("10.{}.{}.{}", leaf, slot, end));
}

/// `end` 0: the leaf, 1: the spine.
IpAddress fabric_link_address(bool v6, std::size_t leaf, std::size_t spine, int end) {
  // ::0 of a subnet is the routers' anycast address, so that IPv6 ends are 2 and 3.
  return must_parse(v6 ? fmt::format("fd00:2:{:x}:{:x}::{:x}", leaf, spine, end + 2)
                       : fmt::format("10.{}.{}.{}", 100 + leaf, spine, end));
}

void add_nodes(Fabric& fabric) {
  const std::string prefix = netns_prefix(fabric.spec.id);
  Mix mix(fabric.spec.seed);
  const auto add = [&](NodeKind kind, const char* stem, int count, std::size_t first_number) {
    for (int number = 1; number <= count; ++number) {
      Node node;
      node.name = fmt::format("{}{}", stem, number);
      node.kind = kind;
      node.netns = prefix + node.name;
      node.fabric_netns = kind == NodeKind::kHost && fabric.spec.nic_netns ? node.netns + "-nic" : node.netns;
      node.management = management_address(fabric.is_v6(), first_number + static_cast<std::size_t>(number));
      if (kind != NodeKind::kHost) node.hash_seed = static_cast<std::uint32_t>(mix.next() | 1);
      fabric.nodes.push_back(std::move(node));
    }
  };
  add(NodeKind::kHost, "h", fabric.spec.hosts, kFirstHostNumber);
  add(NodeKind::kLeaf, "leaf", fabric.spec.leaves, kFirstSwitchNumber);
  add(NodeKind::kSpine, "spine", fabric.spec.spines, kFirstSwitchNumber + static_cast<std::size_t>(fabric.spec.leaves));
}

void add_links(Fabric& fabric) {
  const bool v6 = fabric.is_v6();
  const auto hosts = static_cast<std::size_t>(fabric.spec.hosts);
  const auto leaves = static_cast<std::size_t>(fabric.spec.leaves);
  const auto add = [&](std::size_t a, std::string a_port, IpAddress a_address, std::size_t b, IpAddress b_address,
                       int prefix_length) {
    Link link;
    const std::size_t number = fabric.links.size();
    const std::string& b_port = fabric.nodes[a].name;
    std::string a_ip = a_port;
    if (a < hosts) {
      for (const std::uint16_t vlan : fabric.spec.vlans) a_ip += fmt::format(".{}", vlan);
    }
    link.a = {a, std::move(a_port), std::move(a_ip), mac_of(number, 0xA), a_address};
    link.b = {b, b_port, b_port, mac_of(number, 0xB), b_address};
    link.prefix_length = prefix_length;
    fabric.links.push_back(std::move(link));
  };
  const auto nics = static_cast<std::size_t>(fabric.spec.nics);
  const std::size_t groups = leaves / nics;
  for (std::size_t host = 0; host < hosts; ++host) {
    const std::size_t slot = host / groups + 1;
    for (std::size_t nic = 0; nic < nics; ++nic) {
      const std::size_t leaf = host % groups * nics + nic;
      add(host, fmt::format("eth{}", nic), host_link_address(v6, leaf + 1, slot, 2), hosts + leaf,
          host_link_address(v6, leaf + 1, slot, 1), v6 ? 64 : 24);
    }
  }
  for (std::size_t leaf = 0; leaf < leaves; ++leaf) {
    for (std::size_t spine = 0; spine < static_cast<std::size_t>(fabric.spec.spines); ++spine) {
      const std::size_t spine_node = hosts + leaves + spine;
      add(hosts + leaf, fabric.nodes[spine_node].name, fabric_link_address(v6, leaf + 1, spine + 1, 0), spine_node,
          fabric_link_address(v6, leaf + 1, spine + 1, 1), v6 ? 127 : 31);
    }
  }
}

}  // namespace

std::string netns_prefix(const std::string& id) { return "te-" + id + "-"; }

Fabric lay_out(const Spec& spec) {
  Fabric fabric;
  fabric.spec = spec;
  fabric.management_netns = netns_prefix(spec.id) + "mgmt";
  fabric.cables_netns = netns_prefix(spec.id) + "cables";
  fabric.controller = management_address(fabric.is_v6(), kControllerNumber);
  add_nodes(fabric);
  add_links(fabric);
  return fabric;
}

int management_prefix_length(const Fabric& fabric) { return fabric.is_v6() ? 64 : 16; }

std::vector<Route> routes_of(const Fabric& fabric, std::size_t node) {
  const bool v6 = fabric.is_v6();
  const auto hosts = static_cast<std::size_t>(fabric.spec.hosts);
  const auto leaves = static_cast<std::size_t>(fabric.spec.leaves);
  std::vector<Route> routes;
  if (node < hosts) {
    const Link& link = fabric.links[host_link(fabric, node)];
    return {{v6 ? "::/0" : "0.0.0.0/0", {{link.b.address.to_string(), link.a.ip_name}}}};
  }
  for (std::size_t leaf = 0; leaf < leaves; ++leaf) {
    if (node == hosts + leaf) continue;
    Route route;
    route.prefix = host_prefix(v6, leaf + 1);
    for (const Link& link : fabric.links) {
      if (link.a.node == node) route.next_hops.emplace_back(link.b.address.to_string(), link.a.name);
      if (link.b.node == node && link.a.node == hosts + leaf) {
        route.next_hops.emplace_back(link.a.address.to_string(), link.b.name);
      }
    }
    routes.push_back(std::move(route));
  }
  return routes;
}

const char* kind_name(NodeKind kind) {
  switch (kind) {
    case NodeKind::kHost:
      return "host";
    case NodeKind::kLeaf:
      return "leaf";
    case NodeKind::kSpine:
      return "spine";
  }
  return "";
}

std::string cable_name(std::size_t link) { return fmt::format("c{}", link + 1); }

std::size_t find_node(const Fabric& fabric, const std::string& name) {
  std::size_t index = 0;
  while (index < fabric.nodes.size() && fabric.nodes[index].name != name) ++index;
  return index;
}

std::size_t host_link(const Fabric& fabric, std::size_t host, std::size_t nic) {
  return host * static_cast<std::size_t>(fabric.spec.nics) + nic;
}

const IpAddress& host_address(const Fabric& fabric, std::size_t host, std::size_t nic) {
  return fabric.links[host_link(fabric, host, nic)].a.address;
}

}  // namespace te::lab
