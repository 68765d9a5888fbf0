// SPDX-License-Identifier: Apache-2.0
#include "topology/builder.h"

#include <string>
#include <utility>

namespace te {
namespace {

IpAddress v4(std::uint32_t a, std::uint32_t b, std::uint32_t c, std::uint32_t d) {
  return IpAddress::v4({static_cast<std::uint8_t>(a), static_cast<std::uint8_t>(b), static_cast<std::uint8_t>(c),
                        static_cast<std::uint8_t>(d)});
}

NodeId add_node(Fabric& fabric, const std::string& kind_prefix, std::uint32_t number, NodeKind kind) {
  return *fabric.add_node(kind_prefix + std::to_string(number), kind);
}

PortId add_port(Fabric& fabric, NodeId node, std::string name, const IpAddress& address) {
  const PortId port = *fabric.add_port(node, std::move(name));
  const auto added = fabric.add_address(port, address);
  TE_CHECK(added.ok(), "the builder gave an address twice");
  return port;
}

void join(Fabric& fabric, PortId a, PortId b, double capacity_bps) {
  const auto joined = fabric.connect(a, b, capacity_bps, LinkOrigin::kBuilder);
  TE_CHECK(joined.ok(), "the builder used a port twice or has no capacity");
}

}  // namespace

Fabric build_clos(const ClosSpec& spec) {
  const auto within = [](std::uint32_t number, std::uint32_t most) { return number >= 1 && number <= most; };
  TE_CHECK(within(spec.leaves, 250), "a Clos has 1 to 250 leaves");
  TE_CHECK(within(spec.spines, 250), "a Clos has 1 to 250 spines");
  TE_CHECK(within(spec.hosts_per_leaf, 254), "a leaf has 1 to 254 hosts");
  TE_CHECK(within(spec.cables, 4), "a leaf has 1 to 4 cables to a spine");
  Fabric fabric;
  std::vector<NodeId> spines;
  for (std::uint32_t s = 1; s <= spec.spines; ++s) spines.push_back(add_node(fabric, "spine", s, NodeKind::kSpine));
  std::uint32_t host_number = 0;
  for (std::uint32_t l = 1; l <= spec.leaves; ++l) {
    const NodeId leaf = add_node(fabric, "leaf", l, NodeKind::kLeaf);
    const std::string leaf_name = fabric.node(leaf).name;
    for (std::uint32_t h = 1; h <= spec.hosts_per_leaf; ++h) {
      const NodeId host = add_node(fabric, "h", ++host_number, NodeKind::kHost);
      const PortId nic = add_port(fabric, host, "eth0", v4(10, l, h, 2));
      join(fabric, nic, add_port(fabric, leaf, fabric.node(host).name, v4(10, l, h, 1)), spec.host_bps);
    }
    for (std::uint32_t s = 1; s <= spec.spines; ++s) {
      for (std::uint32_t c = 0; c < spec.cables; ++c) {
        const std::string cable = c == 0 ? "" : "." + std::to_string(c);
        const PortId down = add_port(fabric, leaf, "spine" + std::to_string(s) + cable, v4(172, 16 + c, l, s));
        const PortId up = add_port(fabric, spines[s - 1], leaf_name + cable, v4(172, 20 + c, l, s));
        join(fabric, down, up, spec.uplink_bps);
      }
    }
  }
  return fabric;
}

}  // namespace te
