// SPDX-License-Identifier: Apache-2.0
#include "lab/commands.h"

#include <fmt/format.h>

#include <algorithm>
#include <iterator>

namespace te::lab {
namespace {

/// Room in a port's queue: the windows of more QPs than a lab's links ever share. Memory is taken only when used.
constexpr int kQueueLimitBytes = 8 << 20;
/// Token bucket: enough for two full packets, so that the shaped rate is smooth at the scale of a window.
constexpr int kBurstPackets = 2;
constexpr int kMinBurstBytes = 3000;
/// What a switch's CPU answers (real switches: 100 to a few hundred ICMP errors a second).
constexpr int kIcmpPerSecond = 200;
/// Routing tables of a host's NICs, and the preferences of their rules.
constexpr std::size_t kFirstNicTable = 100;

using Out = std::back_insert_iterator<std::string>;

void append_port(std::string& text, const Fabric& fabric, const Link& link, const Port& port, const Port& peer) {
  const Out out(text);
  const bool v6 = fabric.is_v6();
  if (port.ip_name != port.name) {
    // Not of kind vlan, which not every kernel has: the tags are put on and taken off by tc programs.
    fmt::format_to(out, "link set {} up\nlink add link {} name {} type macvlan mode passthru nopromisc\n", port.name,
                   port.name, port.ip_name);
  }
  fmt::format_to(out, "addr add {}/{} dev {}{}\n", port.address.to_string(), link.prefix_length, port.ip_name,
                 v6 ? " nodad" : "");
  fmt::format_to(out, "link set {} up\n", port.ip_name);
  // Known neighbours: a burst at the start of traffic would overrun the queue of packets that wait for resolution.
  fmt::format_to(out, "neigh add {} lladdr {} dev {} nud permanent\n", peer.address.to_string(), peer.mac,
                 port.ip_name);
}

std::string shaping(const Fabric& fabric, const std::string& port, double rate_bps) {
  const int burst_bytes = std::max(kBurstPackets * (fabric.spec.mtu + 14), kMinBurstBytes);
  return fmt::format("qdisc replace dev {} root tbf rate {:.0f}bit burst {}b limit {}b\n", port, rate_bps, burst_bytes,
                     kQueueLimitBytes);
}

void append_routes(std::string& text, const Fabric& fabric, std::size_t node) {
  const Out out(text);
  for (const Route& route : routes_of(fabric, node)) {
    fmt::format_to(out, "route add {}", route.prefix);
    if (route.next_hops.size() == 1) {
      fmt::format_to(out, " via {} dev {}", route.next_hops[0].first, route.next_hops[0].second);
    } else {
      for (const auto& [gateway, interface] : route.next_hops) {
        fmt::format_to(out, " nexthop via {} dev {}", gateway, interface);
      }
    }
    text += '\n';
  }
}

}  // namespace

std::string namespace_batch(const Fabric& fabric) {
  std::string text = "netns add " + fabric.management_netns + "\nnetns add " + fabric.cables_netns + "\n";
  for (const Node& node : fabric.nodes) {
    text += "netns add " + node.netns + "\n";
    if (node.fabric_netns != node.netns) text += "netns add " + node.fabric_netns + "\n";
  }
  return text;
}

std::string link_batch(const Fabric& fabric) {
  std::string text;
  const Out out(text);
  // No two interfaces of a cable have one index: the kernel takes a veth whose peer has its own index (in another
  // namespace) for one without a lower device, and acts on its carrier up to a second late; until then it drops what
  // is sent.
  int index = 1;
  for (std::size_t number = 0; number < fabric.links.size(); ++number) {
    const Link& link = fabric.links[number];
    const auto pair_end = [&](const std::string& name, const std::string& mac) {
      return fmt::format("name {} index {} address {} mtu {} numtxqueues 1 numrxqueues 1", name, ++index, mac,
                         fabric.spec.mtu);
    };
    const std::string cable = cable_name(number);
    const std::string middle = pair_end(cable, link.b.mac);
    fmt::format_to(out, "link add {} type veth peer {} netns {}\n", middle, pair_end(link.a.name, link.a.mac),
                   fabric.nodes[link.a.node].fabric_netns);
    fmt::format_to(out, "link add link {} name {} index {} netns {} type macvlan mode passthru nopromisc\n", cable,
                   link.b.name, ++index, fabric.nodes[link.b.node].fabric_netns);
    fmt::format_to(out, "link set {} up\n", cable);
  }
  for (const Node& node : fabric.nodes) {
    const int first = ++index;
    fmt::format_to(out, "link add name {} index {} netns {} type veth peer name {} index {} netns {}\n",
                   kManagementInterface, first, node.netns, node.name, ++index, fabric.management_netns);
  }
  return text;
}

std::string node_ip_batch(const Fabric& fabric, std::size_t node) {
  std::string text = "link set lo up\n";
  for (const Link& link : fabric.links) {
    if (link.a.node == node) append_port(text, fabric, link, link.a, link.b);
    if (link.b.node == node) append_port(text, fabric, link, link.b, link.a);
  }
  append_routes(text, fabric, node);
  return text;
}

std::string node_management_batch(const Fabric& fabric, std::size_t node) {
  return fmt::format("link set lo up\naddr add {}/{} dev {}{}\nlink set {} up\n",
                     fabric.nodes[node].management.to_string(), management_prefix_length(fabric), kManagementInterface,
                     fabric.is_v6() ? " nodad" : "", kManagementInterface);
}

std::string source_routing_batch(const Fabric& fabric, std::size_t node) {
  std::string text;
  if (fabric.nodes[node].kind != NodeKind::kHost || fabric.spec.nics == 1) return text;
  for (std::size_t nic = 0; nic < static_cast<std::size_t>(fabric.spec.nics); ++nic) {
    const Link& link = fabric.links[host_link(fabric, node, nic)];
    const std::size_t table = kFirstNicTable + nic;
    fmt::format_to(Out(text), "route add default via {} dev {} table {}\nrule add pref {} from {} lookup {}\n",
                   link.b.address.to_string(), link.a.ip_name, table, table, link.a.address.to_string(), table);
  }
  return text;
}

std::vector<std::string> fabric_ports(const Fabric& fabric, std::size_t node) {
  std::vector<std::string> ports;
  for (const Link& link : fabric.links) {
    if (link.a.node == node) ports.push_back(link.a.name);
    if (link.b.node == node) ports.push_back(link.b.name);
  }
  return ports;
}

std::vector<std::string> vlan_interfaces(const Fabric& fabric, std::size_t node) {
  std::vector<std::string> interfaces;
  for (const Link& link : fabric.links) {
    if (link.a.node == node && link.a.ip_name != link.a.name) interfaces.push_back(link.a.ip_name);
  }
  return interfaces;
}

std::string node_tc_batch(const Fabric& fabric, std::size_t node) {
  std::string text;
  // A host's own sending is paced by its endpoint, as by a NIC.
  if (fabric.nodes[node].kind == NodeKind::kHost) return text;
  for (const std::string& port : fabric_ports(fabric, node)) text += shaping(fabric, port, fabric.spec.rate_bps);
  return text;
}

std::string port_rate_batch(const Fabric& fabric, const Port& port, double rate_bps) {
  const bool is_host = fabric.nodes[port.node].kind == NodeKind::kHost;
  if (is_host && rate_bps >= fabric.spec.rate_bps) return "qdisc replace dev " + port.name + " root noqueue\n";
  return shaping(fabric, port.name, rate_bps);
}

std::vector<Sysctl> node_sysctls(const Fabric& fabric, std::size_t node) {
  const bool v6 = fabric.is_v6();
  std::vector<Sysctl> settings{{"net/ipv4/conf/all/rp_filter", "0"}, {"net/ipv4/conf/default/rp_filter", "0"}};
  for (const char* scope : {"all", "default"}) {
    settings.push_back({fmt::format("net/ipv6/conf/{}/accept_ra", scope), "0", v6});
    settings.push_back({fmt::format("net/ipv6/conf/{}/disable_ipv6", scope), v6 ? "0" : "1", v6});
  }
  if (fabric.nodes[node].kind == NodeKind::kHost) return settings;
  for (const char* scope : {"all", "default"}) {
    settings.push_back({fmt::format("net/ipv4/conf/{}/ignore_routes_with_linkdown", scope), "1"});
    if (v6) settings.push_back({fmt::format("net/ipv6/conf/{}/ignore_routes_with_linkdown", scope), "1"});
    if (v6) settings.push_back({fmt::format("net/ipv6/conf/{}/forwarding", scope), "1"});
  }
  settings.push_back({"net/ipv4/ip_forward", "1"});
  settings.push_back({"net/ipv4/fib_multipath_hash_policy", "1"});
  if (v6) settings.push_back({"net/ipv6/fib_multipath_hash_policy", "1"});
  settings.push_back({"net/ipv4/fib_multipath_hash_seed", std::to_string(fabric.nodes[node].hash_seed), false});
  settings.push_back({"net/ipv4/icmp_errors_use_inbound_ifaddr", "1"});
  // The limit a destination is off and the one of the whole switch is on; IPv6 errors draw on the same budget.
  settings.push_back({"net/ipv4/icmp_ratelimit", "0"});
  if (v6) settings.push_back({"net/ipv6/icmp/ratelimit", "0"});
  settings.push_back({"net/ipv4/icmp_msgs_per_sec", std::to_string(kIcmpPerSecond), false});
  return settings;
}

std::string management_ip_batch(const Fabric& fabric) {
  std::string text;
  const Out out(text);
  fmt::format_to(out, "link set lo up\nlink add br0 type bridge forward_delay 0\naddr add {}/{} dev br0{}\n",
                 fabric.controller.to_string(), management_prefix_length(fabric), fabric.is_v6() ? " nodad" : "");
  text += "link set br0 up\n";
  for (const Node& node : fabric.nodes) fmt::format_to(out, "link set {} master br0 up\n", node.name);
  return text;
}

}  // namespace te::lab
