// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <string>
#include <vector>

#include "lab/fabric.h"

namespace te::lab {

/// One setting below /proc/sys of a node's namespaces.
struct Sysctl {
  std::string path;  ///< relative to /proc/sys
  std::string value;
  bool required = true;  ///< false: older kernels lack it
};

/// Input of `ip -batch` that makes every namespace.
[[nodiscard]] std::string namespace_batch(const Fabric& fabric);
/// Input of `ip -batch` inside the cables' namespace that makes every link. A cable is three interfaces: end a is a
/// veth whose peer stays in the cables' namespace, end b a macvlan on that peer. With the peer down, both ends have no
/// carrier and are up administratively, as after a cable is pulled; no veth can be told to lose its carrier.
[[nodiscard]] std::string link_batch(const Fabric& fabric);
/// Input of `ip -batch` inside the namespace of a node's management interface.
[[nodiscard]] std::string node_management_batch(const Fabric& fabric, std::size_t node);
/// Inputs of `ip -batch` and `tc -batch` inside the namespace of a node's fabric ports.
[[nodiscard]] std::string node_ip_batch(const Fabric& fabric, std::size_t node);
/// Input of `ip -batch` with the fabric's family: what a host with several NICs sends from the address of one leaves by
/// that one. Empty for other nodes.
[[nodiscard]] std::string source_routing_batch(const Fabric& fabric, std::size_t node);
[[nodiscard]] std::string node_tc_batch(const Fabric& fabric, std::size_t node);
/// Input of `tc -batch` that gives a port another rate; the links' own rate is as `up` left it.
[[nodiscard]] std::string port_rate_batch(const Fabric& fabric, const Port& port, double rate_bps);
[[nodiscard]] std::vector<Sysctl> node_sysctls(const Fabric& fabric, std::size_t node);
[[nodiscard]] std::string management_ip_batch(const Fabric& fabric);
/// Interfaces of a node that its cables end in.
[[nodiscard]] std::vector<std::string> fabric_ports(const Fabric& fabric, std::size_t node);
/// VLANs of a node's NICs.
[[nodiscard]] std::vector<std::string> vlan_interfaces(const Fabric& fabric, std::size_t node);

}  // namespace te::lab
