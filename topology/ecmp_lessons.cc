// SPDX-License-Identifier: Apache-2.0
// How EcmpKnowledge takes lessons: what agrees, what contradicts, and what follows for the switch.
#include <algorithm>
#include <string>
#include <utility>

#include "topology/ecmp_knowledge.h"

namespace te {
namespace {

constexpr std::uint8_t kMostConfidence = 254;
constexpr std::uint8_t kMostFlips = 255;
/// Agreeing answers in a row after which odd ones before them are forgiven.
constexpr std::uint8_t kForgiven = 4;

std::string describe(const AddressPair& pair, std::uint16_t port) {
  return pair.source.to_string() + " -> " + pair.destination.to_string() + " port " + std::to_string(port);
}

/// What a flow's changes of answer count against the switch: the first may be a change of membership.
std::uint32_t points_of(std::uint8_t flips) { return flips > 1 ? flips - 1U : 0; }

}  // namespace

bool EcmpKnowledge::agrees(LinkId held, bool held_parallel, LinkId told, bool told_parallel) const {
  if (held == told) return true;
  const Fabric& fabric = routing_->fabric();
  return (held_parallel || told_parallel) && fabric.link(held).to == fabric.link(told).to;
}

void EcmpKnowledge::overwrite(Entry& entry, const Hop& hop, std::int64_t now_ns) {
  entry.link = entry.last_answer = hop.link;
  entry.parallel = hop.parallel;
  entry.source = hop.source;
  entry.doubted = false;
  entry.confidence = 1;
  entry.confirmed_ns = now_ns;
  entry.epoch = switches_[hop.at].epoch;
}

void EcmpKnowledge::agree(Entry& entry, const Hop& hop, std::int64_t now_ns) {
  if (entry.parallel && !hop.parallel) {  // the answer tells the parallel links apart
    entry.link = hop.link;
    entry.parallel = false;
  }
  entry.last_answer = entry.link;
  entry.source = hop.source;
  entry.confirmed_ns = now_ns;
  entry.epoch = switches_[hop.at].epoch;
  entry.confidence = entry.doubted ? std::uint8_t{1} : std::min<std::uint8_t>(kMostConfidence, entry.confidence + 1);
  entry.doubted = false;
  if (entry.flips > 0 && entry.confidence >= kForgiven) {
    SwitchState& state = switches_[hop.at];
    state.points -= std::min(state.points, points_of(entry.flips));
    entry.flips = 0;
  }
}

/// Counts an answer unlike the last; true when that makes the verdict.
bool EcmpKnowledge::flip(Entry& entry, LinkId answer) {
  SwitchState& state = switches_[groups_[entry.group].at];
  entry.last_answer = answer;
  if (entry.flips == kMostFlips) return state.not_a_function;
  const std::uint32_t before = points_of(entry.flips);
  ++entry.flips;
  state.points += points_of(entry.flips) - before;
  if (state.points >= kVerdict) {
    state.not_a_function = true;
    all_changed();
  }
  return state.not_a_function;
}

void EcmpKnowledge::trust_again(NodeId node) {
  SwitchState& state = switches_[node];
  state.not_a_function = false;
  state.points = state.silent_changes = 0;
  ++state.epoch;
  all_changed();
  for (Group& group : groups_) {
    if (group.at == node) group.floor_epoch = state.epoch;
  }
}

/// An answer unlike the link held, in the epoch of that link.
Lesson EcmpKnowledge::contradict(Entry& entry, const Hop& hop, std::int64_t now_ns) {
  const bool again =
      entry.doubted && entry.last_answer != entry.link && agrees(entry.last_answer, false, hop.link, hop.parallel);
  if (!again) {
    entry.doubted = true;
    return flip(entry, hop.link) ? Lesson::kSwitchNotAFunction : Lesson::kContradicted;
  }
  SwitchState& state = switches_[hop.at];
  if (++state.silent_changes >= kSilentChanges) {
    ++state.epoch;
    state.silent_changes = 0;
    all_changed();
    for (Group& group : groups_) {
      if (group.at == hop.at) group.floor_epoch = state.epoch;
    }
    bumped_.push_back(hop.at);
  }
  overwrite(entry, hop, now_ns);
  return Lesson::kReplaced;
}

/// A lesson about a hop that is held.
Lesson EcmpKnowledge::revise(Entry& entry, const Hop& hop, std::int64_t now_ns) {
  Group& group = groups_[entry.group];
  const std::uint32_t epoch = switches_[hop.at].epoch;
  const bool same = agrees(entry.link, entry.parallel, hop.link, hop.parallel);
  const bool of_this_epoch = entry.epoch == epoch || group.confirmed_epoch == epoch;
  if (entry.epoch < group.floor_epoch || (!of_this_epoch && !same)) {
    const bool stale = entry.epoch < group.floor_epoch;
    if (!stale) group.floor_epoch = epoch;  // the group came back, but chooses otherwise now
    if (!stale) all_changed();
    overwrite(entry, hop, now_ns);
    entry.flips = 0;
    return stale ? Lesson::kNew : Lesson::kReplaced;
  }
  if (!same) return contradict(entry, hop, now_ns);
  if (!of_this_epoch) {
    group.confirmed_epoch = epoch;
    all_changed();
    entry.flips = 0;
  }
  const bool returned = entry.doubted && !agrees(entry.last_answer, false, hop.link, hop.parallel);
  if (returned && flip(entry, entry.link)) return Lesson::kSwitchNotAFunction;
  agree(entry, hop, now_ns);
  return Lesson::kConfirmed;
}

Result<Lesson> EcmpKnowledge::learn_at(const AddressPair& pair, std::uint16_t port, GroupId group, const Hop& hop,
                                       std::int64_t now_ns) {
  const auto& members = groups_[group].members;
  if (std::find(members.begin(), members.end(), hop.link) == members.end()) {
    return Error{describe(pair, port) + ": " + routing_->fabric().link_name(hop.link) +
                 " is no equal-cost next link of " + routing_->fabric().node(hop.at).name};
  }
  if (members.size() == 1) return Lesson::kNothing;
  if (switches_[hop.at].not_a_function) return Lesson::kSwitchNotAFunction;
  PairState& state = pairs_[pair];
  state.last_used_ns = std::max(state.last_used_ns, now_ns);
  const auto at =
      std::lower_bound(state.entries.begin(), state.entries.end(), std::pair(port, group),
                       [](const Entry& entry, const auto& key) { return std::pair(entry.port, entry.group) < key; });
  if (at != state.entries.end() && at->port == port && at->group == group) {
    const Entry before = *at;
    const Lesson lesson = revise(*at, hop, now_ns);
    const bool same = at->link == before.link && at->parallel == before.parallel && at->doubted == before.doubted &&
                      at->epoch == before.epoch;
    if (!same) state.changed = ++changes_;
    return lesson;
  }
  Entry entry;
  entry.port = port;
  entry.group = group;
  overwrite(entry, hop, now_ns);
  state.entries.insert(at, entry);
  state.changed = ++changes_;
  ++switches_[hop.at].hops;
  if (++hops_ > max_hops_) make_room(pair);
  return Lesson::kNew;
}

Result<Lesson> EcmpKnowledge::learn(const AddressPair& pair, std::uint16_t port, const Hop& hop, std::int64_t now_ns) {
  follow_fabric();
  const auto ends = find_ends(pair);
  if (!ends) return Error{describe(pair, port) + ": no way between two hosts of the topology"};
  TE_CHECK(hop.at < switches_.size(), "a switch of another fabric");
  TE_CHECK(hop.link < routing_->fabric().links().size(), "a link of another fabric");
  return learn_at(pair, port, group_of(hop.at, ends->destination), hop, now_ns);
}

/// The switches at `distance` hops behind the first one that (pair, port) may pass, given what is known.
std::vector<NodeId> EcmpKnowledge::possible_switches(const PairState* state, std::uint16_t port, const Ends& ends,
                                                     std::uint32_t distance) {
  const Fabric& fabric = routing_->fabric();
  std::vector<NodeId> level{fabric.link(ends.first).to};
  for (std::uint32_t i = 0; i < distance; ++i) {
    std::vector<NodeId> next;
    for (const NodeId at : level) {
      const GroupId group = group_of(at, ends.destination);
      const Entry* entry = find(state, port, group);
      if (entry != nullptr && usable(*entry)) {
        next.push_back(fabric.link(entry->link).to);
      } else {
        for (const LinkId link : groups_[group].members) next.push_back(fabric.link(link).to);
      }
    }
    std::sort(next.begin(), next.end());
    next.erase(std::unique(next.begin(), next.end()), next.end());
    std::erase_if(next, [&](NodeId node) { return fabric.node(node).is_host(); });
    level = std::move(next);
  }
  return level;
}

Result<Lesson> EcmpKnowledge::learn_probe(const AddressPair& pair, std::uint16_t port, std::uint32_t ttl,
                                          const IpAddress& responder, std::int64_t now_ns) {
  follow_fabric();
  const Fabric& fabric = routing_->fabric();
  const auto what = [&] {
    return responder.to_string() + " answered TTL " + std::to_string(ttl) + " of " + describe(pair, port);
  };
  const auto ends = find_ends(pair);
  if (!ends) return Error{what() + ": no way between two hosts of the topology"};
  const auto answering = fabric.find_address(responder);
  if (!answering) {
    return Error{what() + ": no port of the topology has this address; give it to its switch in the topology file"};
  }
  if (ttl == 0 || ttl > fabric.nodes().size()) return Error{what() + ": no such TTL was probed"};
  const NodeId node = fabric.port(*answering).node;
  if (ttl == 1) {
    if (fabric.link(ends->first).to == node) return Lesson::kNothing;
    return Error{what() + ": the first switch is " + fabric.node(fabric.link(ends->first).to).name + ", not " +
                 fabric.node(node).name};
  }
  std::vector<LinkId> arriving;  // links by which the probe may have come to `node`
  for (const NodeId before : possible_switches(find(pair), port, *ends, ttl - 2)) {
    for (const LinkId link : routing_->next_links(before, ends->destination)) {
      if (fabric.link(link).to == node && !fabric.node(node).is_host()) arriving.push_back(link);
    }
  }
  if (arriving.empty())
    return Error{what() + ": " + fabric.node(node).name + " is on no equal-cost path at this distance"};
  const LinkId exact = fabric.port(*answering).in;
  if (std::find(arriving.begin(), arriving.end(), exact) != arriving.end()) arriving = {exact};
  Hop hop{fabric.link(arriving.front()).from, arriving.front(), arriving.size() > 1, HopSource::kProbe};
  for (const LinkId link : arriving) {
    if (fabric.link(link).from != hop.at)
      return Error{what() + ": the hops before are not known; probe lower TTLs first"};
  }
  return learn_at(pair, port, group_of(hop.at, ends->destination), hop, now_ns);
}

}  // namespace te
