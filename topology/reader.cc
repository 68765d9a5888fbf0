// SPDX-License-Identifier: Apache-2.0
#include "topology/reader.h"

#include <array>
#include <cstdint>
#include <optional>
#include <utility>
#include <vector>

#include "common/base/units.h"
#include "common/yaml/yaml_reader.h"

namespace te {
namespace {

constexpr std::int64_t kVersion = 1;
constexpr std::array kKinds{NodeKind::kHost, NodeKind::kLeaf, NodeKind::kSpine, NodeKind::kCore};

std::optional<NodeKind> parse_kind(std::string_view text) {
  for (const NodeKind kind : kKinds) {
    if (to_string(kind) == text) return kind;
  }
  return std::nullopt;
}

Result<void> check_version(const YamlReader& root) {
  if (!root.has("version")) return root.error("'version' is missing; this program reads version 1");
  const auto version = root.integer_or("version", kVersion, kVersion, kVersion);
  if (!version) return version.error();
  return {};
}

Result<void> read_node(const YamlReader& entry, Fabric& fabric) {
  if (auto keys = entry.only_keys({"name", "kind"}); !keys) return keys;
  auto name = entry.string("name");
  if (!name) return name.error();
  const auto kind_text = entry.string("kind");
  if (!kind_text) return kind_text.error();
  const auto kind = parse_kind(*kind_text);
  if (!kind) return entry.error("expected kind host, leaf, spine or core, found '" + *kind_text + "'");
  const auto added = fabric.add_node(*std::move(name), *kind);
  if (!added) return entry.error(added.error().message);
  return {};
}

Result<void> read_addresses(const YamlReader& end, PortId port, Fabric& fabric) {
  const auto addresses = end.list("addresses");
  if (!addresses) return addresses.error();
  for (const YamlReader& entry : *addresses) {
    const auto text = entry.scalar();
    if (!text) return text.error();
    const auto address = IpAddress::parse(*text);
    if (!address) return entry.error(address.error().message);
    if (const auto added = fabric.add_address(port, *address); !added) return entry.error(added.error().message);
  }
  return {};
}

/// The port that one end of a link names, made on its first (and only) use.
Result<PortId> read_end(const YamlReader& link, std::string_view which, Fabric& fabric) {
  const auto end = link.child(which);
  if (!end) return end.error();
  if (const auto keys = end->only_keys({"node", "port", "addresses"}); !keys) return keys.error();
  const auto node_name = end->string("node");
  if (!node_name) return node_name.error();
  auto port_name = end->string("port");
  if (!port_name) return port_name.error();
  const auto node = fabric.find_node(*node_name);
  if (!node) return end->error("there is no node '" + *node_name + "' under 'nodes'");
  if (const auto used = fabric.find_port(*node, *port_name)) {
    return end->error("port " + fabric.port_name(*used) + " is used by two links");
  }
  const auto port = fabric.add_port(*node, *std::move(port_name));
  if (!port) return end->error(port.error().message);
  if (const auto read = read_addresses(*end, *port, fabric); !read) return read.error();
  return *port;
}

Result<void> read_link(const YamlReader& entry, Fabric& fabric) {
  if (auto keys = entry.only_keys({"a", "b", "capacity"}); !keys) return keys;
  const auto a = read_end(entry, "a", fabric);
  if (!a) return a.error();
  const auto b = read_end(entry, "b", fabric);
  if (!b) return b.error();
  const auto capacity_text = entry.string("capacity");
  if (!capacity_text) return capacity_text.error();
  const auto capacity_bps = parse_rate_bps(*capacity_text);
  if (!capacity_bps) return entry.error("capacity: " + capacity_bps.error().message);
  const auto joined = fabric.connect(*a, *b, *capacity_bps, LinkOrigin::kFile);
  if (!joined) return entry.error(joined.error().message);
  return {};
}

/// A host nobody can reach, or that cannot be addressed, is a mistake of the file: there is nothing to engineer for it.
Result<void> check_hosts(const std::vector<YamlReader>& entries, const Fabric& fabric) {
  for (NodeId id = 0; id < fabric.nodes().size(); ++id) {
    const Node& node = fabric.node(id);
    if (!node.is_host()) continue;
    if (node.ports.empty()) return entries[id].error("host '" + node.name + "' has no link");
    for (const PortId port : node.ports) {
      if (fabric.port(port).addresses.empty()) {
        return entries[id].error("port " + fabric.port_name(port) + " of a host needs at least one address");
      }
    }
  }
  return {};
}

}  // namespace

Result<Fabric> read_fabric_yaml(std::string_view text, const std::string& source_name) {
  const auto root = YamlReader::parse(text, source_name);
  if (!root) return root.error();
  if (const auto keys = root->only_keys({"version", "nodes", "links"}); !keys) return keys.error();
  if (const auto version = check_version(*root); !version) return version.error();
  const auto nodes = root->list("nodes");
  if (!nodes) return nodes.error();
  if (nodes->empty()) return root->error("'nodes' is missing or empty; list the hosts and switches");
  const auto links = root->list("links");
  if (!links) return links.error();
  Fabric fabric;
  for (const YamlReader& entry : *nodes) {
    if (const auto read = read_node(entry, fabric); !read) return read.error();
  }
  for (const YamlReader& entry : *links) {
    if (const auto read = read_link(entry, fabric); !read) return read.error();
  }
  if (const auto hosts = check_hosts(*nodes, fabric); !hosts) return hosts.error();
  return fabric;
}

}  // namespace te
