// SPDX-License-Identifier: Apache-2.0
#include "te-controller/engine/steering.h"

#include <utility>

namespace te {

Result<std::pair<SteeringKey, std::uint16_t>> parse_steering_entry(const v1::SteeringEntry& entry) {
  auto flow = parse_flow_id(entry.key());
  if (!flow) return with_context(std::move(flow).error(), "steering entry");
  if (entry.port() < kFirstRocePort || entry.port() > kLastRocePort) {
    return Error{"steering entry: port " + std::to_string(entry.port()) + " is no RoCE source port"};
  }
  return std::pair{SteeringKey{.flow = *flow, .ifindex = entry.key().ifindex()},
                   static_cast<std::uint16_t>(entry.port())};
}

void Steering::restore(const std::map<std::string, v1::SteeringSet>& sets) {
  for (const auto& [node, set] : sets) {
    NodeState& state = nodes_[node];
    state.revision = set.revision();
    for (const v1::SteeringEntry& entry : set.entries()) {
      const auto parsed = parse_steering_entry(entry);
      if (parsed) state.desired.insert(*parsed);
    }
    next_revision_ = std::max(next_revision_, set.revision() + 1);
  }
}

Result<void> Steering::connected(const std::string& node, const v1::Hello& hello) {
  std::map<SteeringKey, std::uint16_t> in_force;
  for (const v1::SteeringEntry& entry : hello.steering()) {
    auto parsed = parse_steering_entry(entry);
    if (!parsed) return std::move(parsed).error();
    in_force.insert(*parsed);
  }
  NodeState& state = nodes_[node];
  if (!state.adopted && !cleared_) {
    state.unstored |= state.desired != in_force;
    state.desired = std::move(in_force);
    state.unsent = false;
  } else if (state.desired != in_force || state.unsent) {
    changed(state);
  }
  state.adopted = true;
  return {};
}

void Steering::changed(NodeState& state) {
  state.revision = next_revision_++;
  state.unsent = state.unstored = true;
}

void Steering::set(const std::string& node, const SteeringKey& key, std::uint16_t port) {
  NodeState& state = nodes_[node];
  state.desired.insert_or_assign(key, port);
  changed(state);
}

void Steering::erase(const std::string& node, const SteeringKey& key) {
  NodeState& state = nodes_[node];
  if (state.desired.erase(key) > 0) changed(state);
}

void Steering::clear_all() {
  cleared_ = true;
  for (auto& [node, state] : nodes_) {
    state.desired.clear();
    changed(state);  // sent even where nothing is desired: an agent may hold what this run never heard of
  }
}

std::optional<std::uint16_t> Steering::desired(const std::string& node, const SteeringKey& key) const {
  const auto& entries = desired(node);
  const auto found = entries.find(key);
  return found == entries.end() ? std::nullopt : std::optional(found->second);
}

const std::map<SteeringKey, std::uint16_t>& Steering::desired(const std::string& node) const {
  static const std::map<SteeringKey, std::uint16_t> kNothing;
  const auto found = nodes_.find(node);
  return found == nodes_.end() ? kNothing : found->second.desired;
}

std::size_t Steering::size() const {
  std::size_t sum = 0;
  for (const auto& [node, state] : nodes_) sum += state.desired.size();
  return sum;
}

std::uint64_t Steering::revision(const std::string& node) const {
  const auto found = nodes_.find(node);
  return found == nodes_.end() ? 0 : found->second.revision;
}

v1::SteeringSet Steering::make_set(const NodeState& state) {
  v1::SteeringSet set;
  set.set_revision(state.revision);
  for (const auto& [key, port] : state.desired) {
    v1::SteeringEntry& entry = *set.add_entries();
    *entry.mutable_key() = make_flow_key(key.flow, key.ifindex);
    entry.set_port(port);
  }
  return set;
}

std::vector<Outgoing> Steering::take_outgoing(const std::set<std::string>& connected) {
  std::vector<Outgoing> out;
  for (auto& [node, state] : nodes_) {
    if (!state.unsent || !connected.contains(node)) continue;
    state.unsent = false;
    Outgoing message{.node = node, .message = {}};
    *message.message.mutable_steering() = make_set(state);
    out.push_back(std::move(message));
  }
  return out;
}

std::map<std::string, v1::SteeringSet> Steering::take_changes() {
  std::map<std::string, v1::SteeringSet> changes;
  for (auto& [node, state] : nodes_) {
    if (std::exchange(state.unstored, false)) changes.emplace(node, make_set(state));
  }
  return changes;
}

}  // namespace te
