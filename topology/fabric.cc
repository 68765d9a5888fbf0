// SPDX-License-Identifier: Apache-2.0
#include "topology/fabric.h"

#include <algorithm>
#include <utility>

namespace te {

std::string_view to_string(NodeKind kind) {
  switch (kind) {
    case NodeKind::kHost:
      return "host";
    case NodeKind::kLeaf:
      return "leaf";
    case NodeKind::kSpine:
      return "spine";
    case NodeKind::kCore:
      return "core";
  }
  return "?";
}

std::string_view to_string(LinkState state) {
  switch (state) {
    case LinkState::kHealthy:
      return "healthy";
    case LinkState::kDown:
      return "down";
    case LinkState::kDrained:
      return "drained";
    case LinkState::kUnknown:
      return "unknown";
  }
  return "?";
}

std::string_view to_string(LinkOrigin origin) {
  switch (origin) {
    case LinkOrigin::kFile:
      return "file";
    case LinkOrigin::kBuilder:
      return "builder";
    case LinkOrigin::kLldp:
      return "lldp";
    case LinkOrigin::kProbe:
      return "probe";
  }
  return "?";
}

Result<NodeId> Fabric::add_node(std::string name, NodeKind kind) {
  if (name.empty()) return Error{"a node needs a name"};
  const auto id = static_cast<NodeId>(nodes_.size());
  if (!node_by_name_.emplace(name, id).second) return Error{"there is already a node '" + name + "'"};
  nodes_.push_back(Node{std::move(name), kind, {}});
  return id;
}

Result<PortId> Fabric::add_port(NodeId node, std::string name) {
  if (name.empty()) return Error{"a port of node '" + nodes_[node].name + "' needs a name"};
  if (find_port(node, name)) return Error{"node '" + nodes_[node].name + "' already has a port '" + name + "'"};
  const auto id = static_cast<PortId>(ports_.size());
  Port port;
  port.node = node;
  port.name = std::move(name);
  ports_.push_back(std::move(port));
  nodes_[node].ports.push_back(id);
  return id;
}

Result<void> Fabric::add_address(PortId port, const IpAddress& address) {
  if (!address.is_set()) return Error{"port " + port_name(port) + " cannot have an unset address"};
  const auto [found, added] = port_by_address_.emplace(address, port);
  if (added) {
    ports_[port].addresses.push_back(address);
  } else if (found->second != port) {
    return Error{"address " + address.to_string() + " already belongs to " + port_name(found->second)};
  }
  return {};
}

Result<LinkId> Fabric::connect(PortId a, PortId b, double capacity_bps, LinkOrigin origin) {
  if (ports_[a].node == ports_[b].node)
    return Error{"a link joins two different nodes, not '" + nodes_[ports_[a].node].name + "' with itself"};
  for (const PortId end : {a, b}) {
    if (ports_[end].out != kNoId)
      return Error{"port " + port_name(end) + " already has a link (" + link_name(ports_[end].out) + ")"};
  }
  if (!(capacity_bps > 0)) return Error{"the capacity of a link must be greater than 0"};
  const auto forth = static_cast<LinkId>(links_.size());
  const LinkId back = forth + 1;
  links_.push_back({ports_[a].node, ports_[b].node, a, b, back, capacity_bps, LinkState::kHealthy, origin});
  links_.push_back({ports_[b].node, ports_[a].node, b, a, forth, capacity_bps, LinkState::kHealthy, origin});
  ports_[a].out = ports_[b].in = forth;
  ports_[b].out = ports_[a].in = back;
  ++path_version_;
  return forth;
}

bool Fabric::set_link_state(LinkId link, LinkState state) {
  LinkState& held = links_[link].state;
  if (held == state) return false;
  if ((held == LinkState::kDown) != (state == LinkState::kDown)) ++path_version_;
  held = state;
  return true;
}

std::optional<NodeId> Fabric::find_node(std::string_view name) const {
  const auto found = node_by_name_.find(std::string(name));
  if (found == node_by_name_.end()) return std::nullopt;
  return found->second;
}

std::optional<PortId> Fabric::find_port(NodeId node, std::string_view name) const {
  const auto& ids = nodes_[node].ports;
  const auto found = std::find_if(ids.begin(), ids.end(), [&](PortId id) { return ports_[id].name == name; });
  if (found == ids.end()) return std::nullopt;
  return *found;
}

std::optional<PortId> Fabric::find_address(const IpAddress& address) const {
  const auto found = port_by_address_.find(address);
  if (found == port_by_address_.end()) return std::nullopt;
  return found->second;
}

std::string Fabric::port_name(PortId id) const { return nodes_[ports_[id].node].name + ":" + ports_[id].name; }

std::string Fabric::link_name(LinkId id) const {
  return port_name(links_[id].from_port) + " -> " + port_name(links_[id].to_port);
}

}  // namespace te
