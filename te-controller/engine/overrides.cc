// SPDX-License-Identifier: Apache-2.0
#include "te-controller/engine/overrides.h"

#include <algorithm>
#include <functional>
#include <utility>

#include "common/base/units.h"

namespace te {
namespace {

bool is_open(const Link& link) { return link.state == LinkState::kHealthy || link.state == LinkState::kUnknown; }

/// One port of a host for each switch that has hosts.
std::map<NodeId, PortId> one_host_a_switch(const Fabric& fabric) {
  std::map<NodeId, PortId> ports;
  for (const Node& node : fabric.nodes()) {
    if (!node.is_host()) continue;
    for (const PortId port : node.ports) {
      if (fabric.port(port).out != kNoId) ports.emplace(fabric.link(fabric.port(port).out).to, port);
    }
  }
  return ports;
}

/// Which nodes have a way to `destination` over links that `usable` allows.
std::set<NodeId> reaching(Routing& routing, PortId destination, const std::map<NodeId, PortId>& from,
                          const std::function<bool(LinkId)>& usable) {
  const Fabric& fabric = routing.fabric();
  std::map<NodeId, bool> known;
  const std::function<bool(NodeId)> reaches = [&](NodeId at) {
    if (at == fabric.port(destination).node) return true;
    if (const auto found = known.find(at); found != known.end()) return found->second;
    known[at] = false;  // next links lead nearer: no way comes back here
    const auto next = routing.next_links(at, destination);
    const std::vector<LinkId> links(next.begin(), next.end());
    const bool found =
        std::ranges::any_of(links, [&](LinkId link) { return usable(link) && reaches(fabric.link(link).to); });
    known[at] = found;
    return found;
  };
  std::set<NodeId> nodes;
  for (const auto& [node, port] : from) {
    if (reaches(node)) nodes.insert(node);
  }
  return nodes;
}

}  // namespace

void Overrides::set(v1::OverrideView one) {
  const std::pair key{one.kind(), one.target()};
  held_.insert_or_assign(key, std::move(one));
  has_changed();
}

void Overrides::has_changed() {
  changed_ = true;
  pins_ =
      static_cast<std::size_t>(std::ranges::count(held_, kPin, [](const auto& entry) { return entry.first.first; }));
}

Result<void> Overrides::erase(const std::string& kind, const std::string& target) {
  if (held_.erase({kind, target}) > 0) {
    has_changed();
    return {};
  }
  std::string others;
  for (const auto& [key, one] : held_) {
    if (key.first == kind) others += (others.empty() ? "" : ", ") + key.second;
  }
  const std::string done = kind == kDrain ? "drained" : "pinned";
  return Error{"'" + target + "' is not " + done + "; " + (others.empty() ? "nothing is" : done + ": " + others)};
}

std::vector<v1::OverrideView> Overrides::expire(double wall_s) {
  std::vector<v1::OverrideView> ended;
  for (auto entry = held_.begin(); entry != held_.end();) {
    const double until_s = entry->second.until_s();
    if (until_s == 0 || wall_s < until_s) {
      ++entry;
      continue;
    }
    ended.push_back(std::move(entry->second));
    entry = held_.erase(entry);
  }
  if (!ended.empty()) has_changed();
  return ended;
}

void Overrides::restore(const std::vector<v1::OverrideView>& all) {
  held_.clear();
  for (const v1::OverrideView& one : all) {
    const auto [held, is_new] = held_.try_emplace({one.kind(), one.target()}, one);
    if (!is_new && lasts_longer(one, held->second)) held->second = one;
  }
  has_changed();
  changed_ = false;  // it is stored
}

const v1::OverrideView* Overrides::find(const std::string& kind, const std::string& target) const {
  const auto found = held_.find({kind, target});
  return found == held_.end() ? nullptr : &found->second;
}

std::string Overrides::why_pinned(const FlowId& flow) const {
  if (pins_ == 0) return {};  // an id takes longer to write than to pass over
  const v1::OverrideView* pin = find(kPin, flow.short_id());
  if (pin == nullptr) return {};
  return "pinned by " + pin->who() + (pin->reason().empty() ? "" : ": " + pin->reason());
}

std::vector<v1::OverrideView> Overrides::all() const {
  std::vector<v1::OverrideView> all;
  for (const auto& [key, one] : held_) all.push_back(one);
  return all;
}

std::optional<std::vector<v1::OverrideView>> Overrides::take_changes() {
  if (!std::exchange(changed_, false)) return std::nullopt;
  return all();
}

bool lasts_longer(const v1::OverrideView& one, const v1::OverrideView& other) {
  return other.until_s() != 0 && (one.until_s() == 0 || one.until_s() > other.until_s());
}

Result<std::set<LinkId>> links_to_drain(const Fabric& fabric, std::string_view target) {
  const std::string name(target);
  const std::size_t colon = name.find(':');
  const auto node = fabric.find_node(name.substr(0, colon));
  if (!node)
    return Error{"no node of the fabric is called '" + name.substr(0, colon) +
                 "'; 'tectl nodes' lists them; a link is written as NODE:PORT of one of its ends"};
  if (fabric.node(*node).is_host())
    return Error{name + (colon == std::string::npos ? " is a host" : " is a host's port") +
                 ": its flows have no other way than its own cable; drain switches or links between them"};
  std::set<LinkId> links;
  const auto add = [&](PortId port) {
    const Port& of = fabric.port(port);
    if (of.out == kNoId || fabric.node(fabric.link(of.out).to).is_host()) return;
    links.insert(of.out);
    links.insert(of.in);
  };
  if (colon == std::string::npos) {
    for (const PortId port : fabric.node(*node).ports) add(port);
    if (links.empty()) return Error{name + " has no links to other switches"};
    return links;
  }
  const auto port = fabric.find_port(*node, name.substr(colon + 1));
  if (!port)
    return Error{"no link is called '" + name +
                 "'; 'tectl links' lists them by the ports at their ends, as leaf1:spine2"};
  add(*port);
  if (links.empty())
    return Error{name + " leads to a host, whose flows have no other way; drain switches or links between them"};
  return links;
}

std::string drain_name(const Fabric& fabric, std::string_view target) {
  const std::string name(target);
  const std::size_t colon = name.find(':');
  if (colon == std::string::npos) return name;
  const auto node = fabric.find_node(name.substr(0, colon));
  const auto port = node ? fabric.find_port(*node, name.substr(colon + 1)) : std::nullopt;
  if (!port || fabric.port(*port).out == kNoId) return name;
  return std::min(name, fabric.port_name(fabric.link(fabric.port(*port).out).to_port));
}

std::string cut_off_by(Routing& routing, const std::set<LinkId>& drained) {
  const Fabric& fabric = routing.fabric();
  const std::map<NodeId, PortId> hosts = one_host_a_switch(fabric);
  const auto open = [&](LinkId link) { return is_open(fabric.link(link)); };
  const auto left = [&](LinkId link) { return open(link) && !drained.contains(link); };
  for (const auto& [node, port] : hosts) {
    const std::set<NodeId> now = reaching(routing, port, hosts, open);
    const std::set<NodeId> then = reaching(routing, port, hosts, left);
    for (const NodeId from : now) {
      if (then.contains(from)) continue;
      return fabric.node(fabric.port(hosts.at(from)).node).name + " -> " + fabric.node(fabric.port(port).node).name;
    }
  }
  return {};
}

std::string describe(const v1::OverrideView& one, double wall_s) {
  std::string text = (one.kind() == Overrides::kDrain ? "drained by " : "pinned by ") + one.who();
  text += one.until_s() == 0 ? " until it is taken back"
                             : " for " + format_duration_s(std::max(0.0, one.until_s() - wall_s)) + " more";
  return text + (one.reason().empty() ? "" : ": " + one.reason());
}

}  // namespace te
