// SPDX-License-Identifier: Apache-2.0
#include "topology/routing.h"

#include <algorithm>
#include <utility>

namespace te {
namespace {

constexpr std::uint32_t kFar = 0xFFFFFFFFU;

bool carries(const Fabric& fabric, LinkId link) { return fabric.link(link).state != LinkState::kDown; }

/// Hops from each node to the switch in front of `destination`, all links up; kFar where there is no way. Hosts keep
/// kFar: they never transit.
std::vector<std::uint32_t> distances(const Fabric& fabric, NodeId last_switch) {
  std::vector<std::uint32_t> hops(fabric.nodes().size(), kFar);
  std::vector<NodeId> queue{last_switch};
  hops[last_switch] = 0;
  for (std::size_t i = 0; i < queue.size(); ++i) {
    const NodeId at = queue[i];
    for (const PortId port : fabric.node(at).ports) {
      const LinkId in = fabric.port(port).in;
      if (in == kNoId) continue;
      const NodeId before = fabric.link(in).from;
      if (fabric.node(before).is_host() || hops[before] != kFar) continue;
      hops[before] = hops[at] + 1;
      queue.push_back(before);
    }
  }
  return hops;
}

/// Walks all paths depth first, in order of link ids.
class Walk {
 public:
  Walk(const Fabric& fabric, const std::vector<std::uint32_t>& begin, const std::vector<LinkId>& next,
       std::size_t limit, std::vector<Path>& found)
      : fabric_(fabric), begin_(begin), next_(next), limit_(limit), found_(found) {}

  void from(NodeId at, NodeId goal) {
    if (at == goal) {
      found_.push_back(Path{links_});
      return;
    }
    for (std::uint32_t i = begin_[at]; i < begin_[at + 1] && found_.size() < limit_; ++i) {
      links_.push_back(next_[i]);
      from(fabric_.link(next_[i]).to, goal);
      links_.pop_back();
    }
  }
  void start(LinkId link) { links_.push_back(link); }

 private:
  const Fabric& fabric_;
  const std::vector<std::uint32_t>& begin_;
  const std::vector<LinkId>& next_;
  std::size_t limit_;
  std::vector<Path>& found_;
  std::vector<LinkId> links_;
};

}  // namespace

Routing::Tree Routing::build(PortId destination) const {
  const Fabric& fabric = *fabric_;
  const std::size_t nodes = fabric.nodes().size();
  Tree tree;
  tree.begin.assign(nodes + 1, 0);
  tree.count.assign(nodes, 0);
  tree.broken.assign(nodes, kNoId);
  const Port& nic = fabric.port(destination);
  if (nic.in == kNoId) return tree;
  const NodeId last_switch = fabric.link(nic.in).from;
  if (fabric.node(last_switch).is_host()) return tree;  // back to back: no switch has anything to choose
  const auto hops = distances(fabric, last_switch);
  std::vector<NodeId> order;
  const auto add = [&](NodeId at, LinkId out) {
    if (carries(fabric, out)) {
      tree.next.push_back(out);
    } else {
      tree.broken[at] = std::min(tree.broken[at], out);
    }
  };
  for (NodeId at = 0; at < nodes; ++at) {
    tree.begin[at] = static_cast<std::uint32_t>(tree.next.size());
    if (at == last_switch) add(at, nic.in);
    if (at != last_switch && hops[at] != kFar) {
      order.push_back(at);
      for (const PortId port : fabric.node(at).ports) {
        const LinkId out = fabric.port(port).out;
        if (out != kNoId && hops[fabric.link(out).to] == hops[at] - 1) add(at, out);
      }
      std::sort(tree.next.begin() + tree.begin[at], tree.next.end());
    }
    if (tree.next.size() > tree.begin[at]) tree.broken[at] = kNoId;
  }
  tree.begin[nodes] = static_cast<std::uint32_t>(tree.next.size());
  std::sort(order.begin(), order.end(), [&](NodeId a, NodeId b) { return hops[a] < hops[b]; });
  tree.count[last_switch] = carries(fabric, nic.in) ? 1 : 0;
  for (const NodeId at : order) {
    for (std::uint32_t i = tree.begin[at]; i < tree.begin[at + 1]; ++i)
      tree.count[at] += tree.count[fabric.link(tree.next[i]).to];
  }
  return tree;
}

const Routing::Tree& Routing::tree(PortId destination) {
  if (version_ != fabric_->path_version()) {
    trees_.clear();
    version_ = fabric_->path_version();
  }
  const auto found = trees_.find(destination);
  if (found != trees_.end()) return found->second;
  return trees_.emplace(destination, build(destination)).first->second;
}

std::span<const LinkId> Routing::next_links(NodeId at, PortId destination) {
  const Tree& towards = tree(destination);
  return std::span<const LinkId>(towards.next).subspan(towards.begin[at], towards.begin[at + 1] - towards.begin[at]);
}

LinkId Routing::broken_link(NodeId at, PortId destination) { return tree(destination).broken[at]; }

double Routing::count_paths(PortId source, PortId destination) {
  const Port& from = fabric_->port(source);
  if (from.node == fabric_->port(destination).node || from.out == kNoId || !carries(*fabric_, from.out)) return 0;
  if (from.out == fabric_->port(destination).in) return 1;  // back to back
  return tree(destination).count[fabric_->link(from.out).to];
}

PathSet Routing::paths(PortId source, PortId destination, std::size_t limit) {
  PathSet set;
  set.total = count_paths(source, destination);
  if (set.total <= 0) return set;
  const Tree& towards = tree(destination);
  const LinkId first = fabric_->port(source).out;
  Walk walk(*fabric_, towards.begin, towards.next, limit, set.paths);
  walk.start(first);
  if (limit > 0) walk.from(fabric_->link(first).to, fabric_->port(destination).node);
  set.truncated = static_cast<double>(set.paths.size()) < set.total;
  return set;
}

}  // namespace te
