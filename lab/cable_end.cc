// SPDX-License-Identifier: Apache-2.0
#include "lab/cable_end.h"

#include "lab/commands.h"

namespace te::lab {
namespace {

std::string range_of(const std::string& stem, int count) {
  if (count == 1) return stem + "1";
  return stem + "1" + (count == 2 ? ", " : " to ") + stem + std::to_string(count);
}

std::string port_names(const Fabric& fabric, std::size_t node) {
  std::string text;
  for (const std::string& port : fabric_ports(fabric, node)) text += (text.empty() ? "" : ", ") + port;
  return text;
}

}  // namespace

std::string node_names(const Fabric& fabric) {
  const Spec& spec = fabric.spec;
  return range_of("h", spec.hosts) + ", " + range_of("leaf", spec.leaves) + ", " + range_of("spine", spec.spines);
}

Result<CableEnd> find_end(const Fabric& fabric, const std::string& name) {
  const auto colon = name.find(':');
  if (colon == std::string::npos) return Error{"'" + name + "' is not NODE:PORT, as in leaf1:spine1 or h1:eth0"};
  const std::string node_name = name.substr(0, colon);
  const std::string port_name = name.substr(colon + 1);
  const std::size_t node = find_node(fabric, node_name);
  if (node == fabric.nodes.size()) {
    return Error{"there is no node '" + node_name + "'; there are " + node_names(fabric)};
  }
  for (std::size_t link = 0; link < fabric.links.size(); ++link) {
    for (const bool is_a : {true, false}) {
      const CableEnd end{link, is_a};
      const Port& port = port_at(fabric, end);
      if (port.node == node && port.name == port_name) return end;
    }
  }
  return Error{node_name + " has no port '" + port_name + "'; it has " + port_names(fabric, node)};
}

Result<std::size_t> find_switch(const Fabric& fabric, const std::string& name) {
  const std::size_t node = find_node(fabric, name);
  if (node < fabric.nodes.size() && fabric.nodes[node].kind != NodeKind::kHost) return node;
  return Error{"there is no switch '" + name + "'; there are " + range_of("leaf", fabric.spec.leaves) + ", " +
               range_of("spine", fabric.spec.spines)};
}

CableEnd other_end(const CableEnd& end) { return {end.link, !end.is_a}; }

const Port& port_at(const Fabric& fabric, const CableEnd& end) {
  return end.is_a ? fabric.links[end.link].a : fabric.links[end.link].b;
}

std::string end_name(const Fabric& fabric, const CableEnd& end) {
  const Port& port = port_at(fabric, end);
  return fabric.nodes[port.node].name + ":" + port.name;
}

}  // namespace te::lab
