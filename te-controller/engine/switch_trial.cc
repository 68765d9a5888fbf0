// SPDX-License-Identifier: Apache-2.0
#include "te-controller/engine/switch_trial.h"

#include <algorithm>
#include <cmath>
#include <iterator>
#include <utility>

namespace te {
namespace {

constexpr double kBitsOfAgreement = 16;
constexpr double kBitsOfSameness = 24;
constexpr std::uint32_t kLeastDiffering = 4;
constexpr std::int64_t kAnswerLimitNs = 3'000'000'000;

std::string name_of(const AddressPair& pair) { return pair.source.to_string() + " -> " + pair.destination.to_string(); }

}  // namespace

std::string_view to_string(SwitchManner manner) {
  switch (manner) {
    case SwitchManner::kUnknown:
      return "unknown";
    case SwitchManner::kByPort:
      return "by port";
    case SwitchManner::kIgnoresPort:
      return "not by port";
    case SwitchManner::kVaries:
      return "varies";
    case SwitchManner::kSilent:
      return "silent";
  }
  return "unknown";
}

void SwitchTrials::take(const AddressPair& pair, std::uint16_t port, LinkId link, std::int64_t now_ns) {
  const Fabric& fabric = routing_->fabric();
  const auto destination = fabric.find_address(pair.destination);
  const NodeId at = fabric.link(link).from;
  if (!destination || fabric.node(at).is_host()) return;
  const std::size_t ways = routing_->next_links(at, *destination).size();
  if (ways < 2) return;
  Trial& trial = trials_[at];
  trial.fewest_ways = trial.fewest_ways == 0 ? ways : std::min(trial.fewest_ways, ways);
  const Key key{pair, port};
  const auto known = trial.ports.find(key);
  if (known == trial.ports.end()) {
    if (trial.ports.size() >= kKept) return;
    trial.ports.emplace(key, Port{.link = link, .agreed = 0, .differed = 0, .asked_ns = 0});
  } else {
    Port& seen = known->second;
    seen.asked_ns = 0;
    const bool same = fabric.link(seen.link).to == fabric.link(link).to;  // parallel links are not always told apart
    ++(same ? seen.agreed : seen.differed);
    seen.link = link;
  }
  judge(trial, now_ns);
}

void SwitchTrials::heard(NodeId node) {
  heard_.insert(node);
  unanswered_.erase(node);
  missed_since_ns_.erase(node);
  changed_ |= silent_.erase(node) > 0;
}

void SwitchTrials::decide(Trial& trial, SwitchManner manner, std::string evidence, std::int64_t now_ns) {
  changed_ |= trial.manner != manner;
  trial.manner = manner;
  trial.evidence = std::move(evidence);
  trial.judged_ns = trial.spot_ns = now_ns;
  trial.closed = manner == SwitchManner::kIgnoresPort || manner == SwitchManner::kVaries;
}

void SwitchTrials::judge(Trial& trial, std::int64_t now_ns) {
  if (trial.closed) return;
  const double bits = std::log2(static_cast<double>(trial.fewest_ways));
  std::uint32_t agreed = 0;
  std::uint32_t differed = 0;
  std::map<AddressPair, std::pair<std::size_t, std::set<NodeId>>> by_pair;  // ports, and where they went
  for (const auto& [key, port] : trial.ports) {
    agreed += port.agreed;
    differed += port.differed;
    auto& [ports, ways] = by_pair[key.first];
    ++ports;
    ways.insert(routing_->fabric().link(port.link).to);
  }
  if (differed >= kLeastDiffering && 4 * differed >= agreed) {
    return decide(trial, SwitchManner::kVaries,
                  std::to_string(differed) + " of " + std::to_string(differed + agreed) +
                      " repeated probes went another way than the one before",
                  now_ns);
  }
  bool told_apart = false;
  for (const auto& [pair, seen] : by_pair) {
    const auto& [ports, ways] = seen;
    told_apart |= ways.size() > 1;
    if (ways.size() > 1 || static_cast<double>(ports - 1) * bits < kBitsOfSameness) continue;
    return decide(trial, SwitchManner::kIgnoresPort,
                  "all " + std::to_string(ports) + " ports of " + name_of(pair) + " that were probed go one of " +
                      std::to_string(trial.fewest_ways) + " ways",
                  now_ns);
  }
  if (trial.manner == SwitchManner::kByPort) {
    // More than a change that nobody told of would explain one by one: on trial again.
    if (differed < kLeastDiffering) return;
    start_over(trial);
    decide(trial, SwitchManner::kUnknown, "ports that were probed again went another way", now_ns);
    return;
  }
  const bool sure = agreed * bits >= kBitsOfAgreement && 8 * differed < agreed;
  if (!sure || !told_apart) return;
  decide(trial, SwitchManner::kByPort,
         std::to_string(agreed) + " of " + std::to_string(agreed + differed) +
             " repeated probes went the same way again, other ports other ways",
         now_ns);
}

void SwitchTrials::start_over(Trial& trial) {
  trial.to_ask.clear();
  for (const auto& [key, port] : trial.ports) trial.to_ask.push_back(key);
  trial.ports.clear();
}

void SwitchTrials::begin_anew(NodeId node) {
  const auto found = trials_.find(node);
  if (found == trials_.end()) return;
  start_over(found->second);
  found->second.fewest_ways = 0;
  found->second.closed = false;
}

std::vector<std::pair<AddressPair, std::uint16_t>> SwitchTrials::wanted(
    const std::function<bool(const AddressPair&)>& active, std::int64_t now_ns) {
  std::vector<Key> ask;
  for (auto& [node, trial] : trials_) {
    std::erase_if(trial.ports, [&](const auto& entry) { return !active(entry.first.first); });
    std::erase_if(trial.to_ask, [&](const Key& key) { return !active(key.first); });
    note_unanswered(trial, now_ns);
    look_for_silence(trial, node, now_ns);
    plan(trial, ask, now_ns);
  }
  return ask;
}

void SwitchTrials::plan(Trial& trial, std::vector<Key>& ask, std::int64_t now_ns) {
  if (trial.closed) {
    if (now_ns - trial.judged_ns < kReviewNs) return;
    start_over(trial);  // until the new trial is over the verdict stands
    trial.closed = false;
  }
  const bool ends = trial.to_ask.empty();
  for (std::size_t i = 0; i < kRepeats && !trial.to_ask.empty(); ++i) {
    ask.push_back(trial.to_ask.back());
    trial.to_ask.pop_back();
  }
  if (!ends) return;
  std::size_t most = kRepeats;
  if (trial.manner == SwitchManner::kByPort) {
    if (now_ns - trial.spot_ns < kSpotCheckNs) return;
    trial.spot_ns = now_ns;
    most = kSpotPorts;
  }
  std::size_t under_way = 0;
  for (const auto& [key, port] : trial.ports) under_way += port.asked_ns != 0 ? 1 : 0;
  auto turn = trial.ports.begin();
  std::advance(turn, static_cast<std::ptrdiff_t>(trial.ports.empty() ? 0 : trial.spot % trial.ports.size()));
  for (std::size_t i = 0; i < trial.ports.size() && under_way < most; ++i, ++turn, ++trial.spot) {
    if (turn == trial.ports.end()) turn = trial.ports.begin();
    if (turn->second.asked_ns != 0) continue;
    turn->second.asked_ns = now_ns;
    ask.push_back(turn->first);
    ++under_way;
  }
}

void SwitchTrials::note_unanswered(Trial& trial, std::int64_t now_ns) {
  for (auto& [key, port] : trial.ports) {
    if (port.asked_ns == 0 || now_ns - port.asked_ns < kAnswerLimitNs) continue;
    port.asked_ns = 0;
    const NodeId node = routing_->fabric().link(port.link).to;
    if (++unanswered_[node] >= kUnanswered) changed_ |= silent_.insert(node).second;
  }
}

void SwitchTrials::look_for_silence(const Trial& trial, NodeId at, std::int64_t now_ns) {
  constexpr std::size_t kEvidence = 8;
  if (trial.ports.size() < kEvidence) return;
  const auto destination = routing_->fabric().find_address(trial.ports.begin()->first.first.destination);
  if (!destination) return;
  for (const LinkId link : routing_->next_links(at, *destination)) {
    const NodeId node = routing_->fabric().link(link).to;
    if (heard_.contains(node)) continue;
    const auto since = missed_since_ns_.emplace(node, now_ns).first->second;
    if (now_ns - since >= kSilentNs) changed_ |= silent_.insert(node).second;
  }
}

SwitchManner SwitchTrials::manner(NodeId node) const {
  if (silent_.contains(node)) return SwitchManner::kSilent;
  const auto found = trials_.find(node);
  return found == trials_.end() ? SwitchManner::kUnknown : found->second.manner;
}

std::string SwitchTrials::evidence(NodeId node) const {
  if (silent_.contains(node)) return "it answers no probe, others in its place do; does it send ICMP time exceeded?";
  const auto found = trials_.find(node);
  return found == trials_.end() ? std::string() : found->second.evidence;
}

NodeId SwitchTrials::untrusted_on(std::span<const LinkId> way, PortId destination) const {
  for (const LinkId link : way) {
    const NodeId at = routing_->fabric().link(link).from;
    if (routing_->fabric().node(at).is_host() || routing_->next_links(at, destination).size() < 2) continue;
    const auto found = trials_.find(at);
    if (found == trials_.end() || found->second.manner != SwitchManner::kByPort) return at;
  }
  return kNoId;
}

}  // namespace te
