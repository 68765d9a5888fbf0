// SPDX-License-Identifier: Apache-2.0
#include "topology/ecmp_knowledge.h"

#include <algorithm>
#include <utility>

namespace te {
namespace {

std::uint64_t force_key(NodeId at, PortId destination) { return std::uint64_t{at} << 32 | destination; }

}  // namespace

std::string_view to_string(SwitchEcmp state) {
  switch (state) {
    case SwitchEcmp::kUnknown:
      return "unknown";
    case SwitchEcmp::kLearned:
      return "learned";
    case SwitchEcmp::kNotAFunction:
      return "not a function of the port";
  }
  return "?";
}

EcmpKnowledge::EcmpKnowledge(Routing& routing, std::size_t max_hops)
    : routing_(&routing),
      max_hops_(max_hops),
      version_(routing.fabric().path_version()),
      switches_(routing.fabric().nodes().size()) {
  static_assert(sizeof(Entry) == 32, "the header documents the memory of a hop");
  TE_CHECK(max_hops > 0, "ECMP knowledge needs room for one hop");
}

std::vector<NodeId> EcmpKnowledge::sync() {
  follow_fabric();
  std::sort(bumped_.begin(), bumped_.end());
  bumped_.erase(std::unique(bumped_.begin(), bumped_.end()), bumped_.end());
  return std::exchange(bumped_, {});
}

void EcmpKnowledge::follow_fabric() {
  const Fabric& fabric = routing_->fabric();
  if (version_ == fabric.path_version()) return;
  version_ = fabric.path_version();
  all_changed();
  switches_.resize(fabric.nodes().size());
  std::vector<NodeId> changed;
  for (auto& [key, group] : group_in_force_) {
    const auto at = static_cast<NodeId>(key >> 32);
    const GroupId now = intern(at, routing_->next_links(at, static_cast<PortId>(key)));
    if (now != group) changed.push_back(at);
    group = now;
  }
  std::sort(changed.begin(), changed.end());
  changed.erase(std::unique(changed.begin(), changed.end()), changed.end());
  for (const NodeId at : changed) {
    SwitchState& state = switches_[at];
    ++state.epoch;
    state.points = state.silent_changes = 0;
    state.not_a_function = false;
    bumped_.push_back(at);
  }
}

EcmpKnowledge::GroupId EcmpKnowledge::intern(NodeId at, std::span<const LinkId> members) {
  std::pair<NodeId, std::vector<LinkId>> key(at, {members.begin(), members.end()});
  const auto found = group_by_members_.find(key);
  if (found != group_by_members_.end()) return found->second;
  const auto id = static_cast<GroupId>(groups_.size());
  groups_.push_back(Group{at, key.second, 0, 0});
  group_by_members_.emplace(std::move(key), id);
  return id;
}

EcmpKnowledge::GroupId EcmpKnowledge::group_of(NodeId at, PortId destination) {
  const auto found = group_in_force_.find(force_key(at, destination));
  if (found != group_in_force_.end()) return found->second;
  const GroupId group = intern(at, routing_->next_links(at, destination));
  group_in_force_.emplace(force_key(at, destination), group);
  return group;
}

std::optional<EcmpKnowledge::Ends> EcmpKnowledge::find_ends(const AddressPair& pair) const {
  const Fabric& fabric = routing_->fabric();
  const auto source = fabric.find_address(pair.source);
  const auto destination = fabric.find_address(pair.destination);
  if (!source || !destination) return std::nullopt;
  const LinkId first = fabric.port(*source).out;
  const NodeId goal = fabric.port(*destination).node;
  if (first == kNoId || fabric.port(*source).node == goal) return std::nullopt;
  return Ends{*source, *destination, first, goal};
}

const EcmpKnowledge::PairState* EcmpKnowledge::find(const AddressPair& pair) const {
  const auto found = pairs_.find(pair);
  return found == pairs_.end() ? nullptr : &found->second;
}

const EcmpKnowledge::Entry* EcmpKnowledge::find(const PairState* state, std::uint16_t port, GroupId group) {
  if (state == nullptr) return nullptr;
  const auto at =
      std::lower_bound(state->entries.begin(), state->entries.end(), std::pair(port, group),
                       [](const Entry& entry, const auto& key) { return std::pair(entry.port, entry.group) < key; });
  return at != state->entries.end() && at->port == port && at->group == group ? &*at : nullptr;
}

bool EcmpKnowledge::usable(const Entry& entry) const {
  const Group& group = groups_[entry.group];
  const std::uint32_t epoch = switches_[group.at].epoch;
  return !entry.doubted && entry.epoch >= group.floor_epoch && (entry.epoch == epoch || group.confirmed_epoch == epoch);
}

ComposedPath EcmpKnowledge::compose(const AddressPair& pair, std::uint16_t port) {
  follow_fabric();
  const auto ends = find_ends(pair);
  return ends ? compose(find(pair), *ends, port) : ComposedPath{};
}

ComposedPath EcmpKnowledge::compose(const PairState* state, const Ends& ends, std::uint16_t port) {
  using Status = ComposedPath::Status;
  const Fabric& fabric = routing_->fabric();
  ComposedPath path;
  constexpr std::size_t kUsualLinks = 6;  // three tiers; this is called for each flow, again and again
  path.links.reserve(kUsualLinks);
  path.links.push_back(ends.first);
  if (fabric.link(ends.first).state == LinkState::kDown) {
    path.status = Status::kBroken;
    return path;
  }
  for (NodeId at = fabric.link(ends.first).to; at != ends.goal; at = fabric.link(path.links.back()).to) {
    const GroupId group = group_of(at, ends.destination);
    const auto& members = groups_[group].members;
    if (members.empty()) {
      const LinkId broken = routing_->broken_link(at, ends.destination);
      if (broken == kNoId) return ComposedPath{};
      path.links.push_back(broken);
      path.status = Status::kBroken;
      return path;
    }
    if (members.size() == 1) {
      path.links.push_back(members.front());
      continue;
    }
    const Entry* entry = find(state, port, group);
    const bool no_function = switches_[at].not_a_function;
    if (no_function || entry == nullptr || !usable(*entry)) {
      path.status = no_function ? Status::kNotAFunction : Status::kPartlyKnown;
      path.unknown_at = at;
      return path;
    }
    if (entry->parallel) path.parallel_hops.push_back(static_cast<std::uint32_t>(path.links.size()));
    path.links.push_back(entry->link);
    path.confidence = std::min(path.confidence, entry->confidence);
    path.oldest_ns = path.oldest_ns == 0 ? entry->confirmed_ns : std::min(path.oldest_ns, entry->confirmed_ns);
  }
  path.status = path.parallel_hops.empty() ? Status::kKnown : Status::kOneOfParallel;
  return path;
}

namespace {

/// True when `path` is `composed`, up to links parallel to those at its parallel hops.
bool may_be(const Fabric& fabric, const ComposedPath& composed, const Path& path) {
  if (composed.links.size() != path.links.size()) return false;
  for (std::uint32_t i = 0; i < path.links.size(); ++i) {
    if (composed.links[i] == path.links[i]) continue;
    const Link& a = fabric.link(composed.links[i]);
    const Link& b = fabric.link(path.links[i]);
    const bool parallel = std::binary_search(composed.parallel_hops.begin(), composed.parallel_hops.end(), i);
    if (!parallel || a.from != b.from || a.to != b.to) return false;
  }
  return true;
}

}  // namespace

std::vector<PathPorts> EcmpKnowledge::ports_by_path(const AddressPair& pair, std::span<const Path> paths) {
  follow_fabric();
  std::vector<PathPorts> ports(paths.size());
  const auto ends = find_ends(pair);
  const PairState* state = find(pair);
  if (!ends || state == nullptr) return ports;
  std::map<std::vector<LinkId>, std::size_t> index;
  for (std::size_t i = 0; i < paths.size(); ++i) index.emplace(paths[i].links, i);
  int last_port = -1;
  for (const Entry& entry : state->entries) {
    if (entry.port == last_port) continue;
    last_port = entry.port;
    const ComposedPath way = compose(state, *ends, entry.port);
    if (way.status == ComposedPath::Status::kKnown) {
      const auto found = index.find(way.links);
      if (found != index.end()) ports[found->second].ports.push_back(entry.port);
    } else if (way.status == ComposedPath::Status::kOneOfParallel) {
      for (std::size_t i = 0; i < paths.size(); ++i) {
        if (may_be(routing_->fabric(), way, paths[i])) ports[i].maybe.push_back(entry.port);
      }
    }
  }
  return ports;
}

std::optional<std::uint16_t> EcmpKnowledge::port_that_ends_at(const AddressPair& pair, LinkId link) {
  follow_fabric();
  const auto ends = find_ends(pair);
  const PairState* state = find(pair);
  if (!ends || state == nullptr) return std::nullopt;
  for (const Entry& entry : state->entries) {
    const ComposedPath way = compose(state, *ends, entry.port);
    if (way.status == ComposedPath::Status::kBroken && way.links.back() == link) return entry.port;
  }
  return std::nullopt;
}

std::vector<HopToLearn> EcmpKnowledge::hops_to_learn(const AddressPair& pair) {
  follow_fabric();
  std::vector<HopToLearn> hops;
  const auto ends = find_ends(pair);
  const Fabric& fabric = routing_->fabric();
  if (!ends || fabric.link(ends->first).state == LinkState::kDown) return hops;
  std::vector<NodeId> level{fabric.link(ends->first).to};
  for (std::uint32_t ttl = 2; !level.empty() && level.front() != ends->goal; ++ttl) {
    HopToLearn hop;
    hop.ttl = ttl;
    for (const NodeId at : level) {
      const auto next = routing_->next_links(at, ends->destination);
      if (next.size() > 1) hop.choosing.push_back(at);
      for (const LinkId link : next) hop.answering.push_back(fabric.link(link).to);
    }
    std::sort(hop.answering.begin(), hop.answering.end());
    hop.answering.erase(std::unique(hop.answering.begin(), hop.answering.end()), hop.answering.end());
    level = hop.answering;
    if (!hop.choosing.empty()) hops.push_back(std::move(hop));
  }
  return hops;
}

std::vector<std::uint16_t> EcmpKnowledge::ports_to_check(const AddressPair& pair) {
  follow_fabric();
  std::vector<std::uint16_t> ports;
  const auto ends = find_ends(pair);
  const PairState* state = find(pair);
  if (!ends || state == nullptr) return ports;
  int last_port = -1;
  for (const Entry& entry : state->entries) {
    if (entry.port == last_port) continue;
    last_port = entry.port;
    if (compose(state, *ends, entry.port).status == ComposedPath::Status::kPartlyKnown) ports.push_back(entry.port);
  }
  return ports;
}

std::vector<std::uint16_t> EcmpKnowledge::untried_ports(const AddressPair& pair, std::size_t count) const {
  constexpr std::uint32_t kPorts = kLastRocePort - kFirstRocePort + 1U;
  const PairState* state = find(pair);
  const std::uint64_t hash = std::hash<AddressPair>()(pair);
  // An odd stride visits every port of a range that is a power of two.
  const auto stride = static_cast<std::uint32_t>(hash >> 32) | 1U;
  std::vector<std::uint16_t> ports;
  auto offset = static_cast<std::uint32_t>(hash);
  for (std::uint32_t i = 0; i < kPorts && ports.size() < count; ++i, offset += stride) {
    const auto port = static_cast<std::uint16_t>(kFirstRocePort + offset % kPorts);
    const bool tried =
        state != nullptr && std::binary_search(state->entries.begin(), state->entries.end(), Entry{.port = port},
                                               [](const Entry& a, const Entry& b) { return a.port < b.port; });
    if (!tried) ports.push_back(port);
  }
  return ports;
}

std::size_t EcmpKnowledge::ports_tried(const AddressPair& pair) const {
  const PairState* state = find(pair);
  std::size_t count = 0;
  if (state == nullptr) return 0;
  for (std::size_t i = 0; i < state->entries.size(); ++i) {
    if (i == 0 || state->entries[i].port != state->entries[i - 1].port) ++count;
  }
  return count;
}

void EcmpKnowledge::doubt(const AddressPair& pair, std::uint16_t port) {
  const auto found = pairs_.find(pair);
  if (found == pairs_.end()) return;
  for (Entry& entry : found->second.entries) {
    if (entry.port == port && !entry.doubted) entry.doubted = true;
  }
  found->second.changed = ++changes_;
}

void EcmpKnowledge::touch(const AddressPair& pair, std::int64_t now_ns) {
  const auto found = pairs_.find(pair);
  if (found != pairs_.end()) found->second.last_used_ns = std::max(found->second.last_used_ns, now_ns);
}

void EcmpKnowledge::release(const PairState& state) {
  all_changed();
  hops_ -= state.entries.size();
  for (const Entry& entry : state.entries) --switches_[groups_[entry.group].at].hops;
}

std::size_t EcmpKnowledge::forget_unused(std::int64_t now_ns, std::int64_t age_ns) {
  const std::size_t forgotten = std::erase_if(pairs_, [&](const auto& item) {
    if (now_ns - item.second.last_used_ns < age_ns) return false;
    release(item.second);
    return true;
  });
  if (forgotten > 0) drop_ways();
  return forgotten;
}

/// Forgets about a sixteenth of the pairs at once, so that a full store does not search for each new hop.
void EcmpKnowledge::make_room(const AddressPair& keep) {
  std::vector<std::pair<std::int64_t, AddressPair>> ages;
  for (const auto& [pair, state] : pairs_) {
    if (pair != keep) ages.emplace_back(state.last_used_ns, pair);
  }
  std::sort(ages.begin(), ages.end());
  ages.resize(std::min(ages.size(), ages.size() / 16 + 1));
  for (const auto& [age, pair] : ages) {
    release(pairs_.at(pair));
    pairs_.erase(pair);
  }
}

SwitchKnowledge EcmpKnowledge::switch_knowledge(NodeId node) const {
  if (node >= switches_.size()) return {};
  const SwitchState& state = switches_[node];
  const SwitchEcmp verdict = state.not_a_function ? SwitchEcmp::kNotAFunction
                             : state.hops > 0     ? SwitchEcmp::kLearned
                                                  : SwitchEcmp::kUnknown;
  return {verdict, state.epoch, state.hops};
}

}  // namespace te
