// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <string>
#include <vector>

#include "lab/fabric.h"

namespace te::lab {

/// One setting below /proc/sys of a node's namespace.
struct Sysctl {
  std::string path;  ///< relative to /proc/sys
  std::string value;
  bool required = true;  ///< false: older kernels lack it
};

/// Input of `ip -batch` that makes every namespace, and every link in its two namespaces.
[[nodiscard]] std::string namespace_batch(const Fabric& fabric);
[[nodiscard]] std::string link_batch(const Fabric& fabric);
/// Inputs of `ip -batch` and `tc -batch` inside one node's namespace.
[[nodiscard]] std::string node_ip_batch(const Fabric& fabric, std::size_t node);
[[nodiscard]] std::string node_tc_batch(const Fabric& fabric, std::size_t node);
[[nodiscard]] std::vector<Sysctl> node_sysctls(const Fabric& fabric, std::size_t node);
[[nodiscard]] std::string management_ip_batch(const Fabric& fabric);
/// Interfaces of a switch that fabric traffic leaves by.
[[nodiscard]] std::vector<std::string> fabric_ports(const Fabric& fabric, std::size_t node);

}  // namespace te::lab
