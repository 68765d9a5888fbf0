// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <unordered_map>
#include <vector>

#include "common/base/ip_address.h"
#include "common/base/result.h"

namespace te {

/// Indices into a Fabric, dense from 0. They stay valid for its life: nothing is removed, links change state.
using NodeId = std::uint32_t;
using PortId = std::uint32_t;
using LinkId = std::uint32_t;
inline constexpr std::uint32_t kNoId = 0xFFFFFFFFU;

enum class NodeKind : std::uint8_t { kHost, kLeaf, kSpine, kCore };
/// kDown: carries nothing and is in no path. kDrained: switches still use it, we put no flow there. kUnknown: as
/// healthy.
enum class LinkState : std::uint8_t { kHealthy, kDown, kDrained, kUnknown };
/// Where a link is known from.
enum class LinkOrigin : std::uint8_t { kFile, kBuilder, kLldp, kProbe };

[[nodiscard]] std::string_view to_string(NodeKind kind);
[[nodiscard]] std::string_view to_string(LinkState state);
[[nodiscard]] std::string_view to_string(LinkOrigin origin);

struct Node {
  std::string name;
  NodeKind kind = NodeKind::kHost;
  std::vector<PortId> ports;
  [[nodiscard]] bool is_host() const { return kind == NodeKind::kHost; }
};

/// A NIC or switch port. `netns`: network namespace on its node, empty: the agent's own.
struct Port {
  NodeId node = kNoId;
  std::string name;
  std::string netns;
  std::vector<IpAddress> addresses;
  LinkId out = kNoId;  ///< the link that leaves here; kNoId: not connected
  LinkId in = kNoId;   ///< the link that arrives here
};

/// One direction of a cable. `capacity_bps`: bits/s on the wire, > 0.
struct Link {
  NodeId from = kNoId;
  NodeId to = kNoId;
  PortId from_port = kNoId;
  PortId to_port = kNoId;
  LinkId reverse = kNoId;
  double capacity_bps = 0;
  LinkState state = LinkState::kHealthy;
  LinkOrigin origin = LinkOrigin::kFile;
};

/// The graph of hosts, switches and links. Copyable: a snapshot is a copy.
class Fabric {
 public:
  /// An Error when the name is empty or taken.
  Result<NodeId> add_node(std::string name, NodeKind kind);
  /// An Error when the node has a port of that name.
  Result<PortId> add_port(NodeId node, std::string name);
  /// NICs may have many addresses, switch ports too; an Error when another port has it (the message names it).
  Result<void> add_address(PortId port, const IpAddress& address);
  /// Joins two free ports of different nodes by a full-duplex cable; returns the link a -> b, its `reverse` is b -> a.
  Result<LinkId> connect(PortId a, PortId b, double capacity_bps, LinkOrigin origin);
  /// True when the state was another one. One direction only.
  bool set_link_state(LinkId link, LinkState state);

  [[nodiscard]] const std::vector<Node>& nodes() const { return nodes_; }
  [[nodiscard]] const std::vector<Port>& ports() const { return ports_; }
  [[nodiscard]] const std::vector<Link>& links() const { return links_; }
  [[nodiscard]] const Node& node(NodeId id) const { return nodes_[id]; }
  [[nodiscard]] const Port& port(PortId id) const { return ports_[id]; }
  [[nodiscard]] const Link& link(LinkId id) const { return links_[id]; }

  [[nodiscard]] std::optional<NodeId> find_node(std::string_view name) const;
  [[nodiscard]] std::optional<PortId> find_port(NodeId node, std::string_view name) const;
  /// The port that owns `address`; its `in` is the link that arrives there.
  [[nodiscard]] std::optional<PortId> find_address(const IpAddress& address) const;

  /// "leaf1:spine1", the sending end.
  [[nodiscard]] std::string port_name(PortId id) const;
  /// "leaf1:spine1 -> spine1:leaf1".
  [[nodiscard]] std::string link_name(LinkId id) const;
  /// Grows whenever paths may have changed (links added, or up / down).
  [[nodiscard]] std::uint64_t path_version() const { return path_version_; }

 private:
  std::vector<Node> nodes_;
  std::vector<Port> ports_;
  std::vector<Link> links_;
  std::unordered_map<std::string, NodeId> node_by_name_;
  std::unordered_map<IpAddress, PortId> port_by_address_;
  std::uint64_t path_version_ = 0;
};

}  // namespace te
