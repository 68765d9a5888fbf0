// SPDX-License-Identifier: Apache-2.0
#include "te-controller/engine/prober.h"

#include <algorithm>
#include <array>
#include <cmath>

#include "common/base/units.h"

namespace te {
namespace {

constexpr std::int64_t kFirstBackOffNs = 500 * kNsPerMs;
constexpr std::int64_t kLongestBackOffNs = 60'000 * kNsPerMs;
constexpr std::size_t kRequestsANode = 32;  // in flight: agents refuse more than 64
constexpr std::size_t kLeastEffortPorts = 64;
constexpr std::size_t kRocePorts = kLastRocePort - kFirstRocePort + 1;
constexpr double kEffortFactor = 4;  // of the expected number: misses a path once in 4e6 pairs of 64 paths
constexpr double kSpareFactor = 8;   // ports a path, then no more spares

/// Ports after which a path without one is taken for unreachable. The expected number to cover p paths is
/// p (ln p + 0.58): coupon collector.
std::size_t effort_ports(std::size_t paths) {
  const auto p = static_cast<double>(paths);
  const double enough = kEffortFactor * p * (std::log(p) + 0.58);
  return std::min(kRocePorts, std::max(kLeastEffortPorts, static_cast<std::size_t>(enough)));
}

}  // namespace

Prober::Prober(Routing& routing, EcmpKnowledge& knowledge, const ProbingOptions& options)
    : routing_(&routing), knowledge_(&knowledge), options_(options), budget_(options.answers_per_switch_per_s) {}

void Prober::rouse(const AddressPair& pair, Pair& state) {
  if (std::exchange(state.quiet, false)) awake_.emplace(pair, &state);
}

void Prober::set_targets(std::vector<ProbeTarget> targets, std::int64_t now_ns) {
  std::ranges::sort(targets, {}, &ProbeTarget::pair);
  auto old = pairs_.begin();
  for (ProbeTarget& target : targets) {
    const AddressPair pair = target.pair;
    while (old != pairs_.end() && old->first < pair) old = drop(old);
    const bool is_new = old == pairs_.end() || old->first != pair;
    const auto place = is_new ? pairs_.emplace_hint(old, pair, Pair{}) : old++;
    Pair& state = place->second;
    state.stale |= is_new || state.target.data != target.data;
    if (state.stale || state.target.ports_in_use != target.ports_in_use) rouse(pair, state);
    if (is_new || state.target.data != target.data) states_[pair].data = target.data;
    if (is_new) states_[pair].since_ns = state.refreshed_ns = now_ns;
    state.target = std::move(target);
    knowledge_->touch(pair, now_ns);
  }
  while (old != pairs_.end()) old = drop(old);
}

/// The pair has no flow any more.
std::map<AddressPair, Prober::Pair>::iterator Prober::drop(std::map<AddressPair, Pair>::iterator pair) {
  awake_.erase(pair->first);
  states_.erase(pair->first);
  return pairs_.erase(pair);
}

void Prober::verify(const AddressPair& pair, std::uint16_t port) {
  const auto found = pairs_.find(pair);
  if (found == pairs_.end()) return;
  found->second.to_verify.insert(port);
  rouse(pair, found->second);
}

const ProbeTarget* Prober::target(const AddressPair& pair) const {
  const auto found = pairs_.find(pair);
  return found == pairs_.end() ? nullptr : &found->second.target;
}

void Prober::knowledge_changed() {
  for (auto& [pair, state] : pairs_) {
    state.stale = true;
    rouse(pair, state);
    state.refused.clear();
  }
}

void Prober::update_progress(const AddressPair& pair, Pair& state) {
  state.stale = false;
  PairState& shown = states_[pair];
  const auto from = routing_->fabric().find_address(pair.source);
  const auto to = routing_->fabric().find_address(pair.destination);
  state.wants_spares = false;
  shown.unreached_paths = 0;
  if (!from || !to || knowledge_->hops_to_learn(pair).empty()) {
    shown.progress = PairProgress::kNothingToLearn;
    return;
  }
  const PathSet set = routing_->paths(*from, *to, kPathLimit);
  std::size_t fewest = kRocePorts;
  for (const PathPorts& ports : knowledge_->ports_by_path(pair, set.paths)) {
    const std::size_t known = ports.ports.size() + ports.maybe.size();
    fewest = std::min(fewest, known);
    if (known == 0) ++shown.unreached_paths;
  }
  const std::size_t tried = knowledge_->ports_tried(pair) + state.refused.size();
  if (shown.unreached_paths == 0) {
    shown.progress = PairProgress::kCovered;
  } else {
    shown.progress = tried >= effort_ports(set.paths.size()) ? PairProgress::kGaveUp : PairProgress::kExploring;
  }
  state.wants_spares = state.target.data && shown.progress == PairProgress::kCovered && fewest < 1 + kSparePorts &&
                       static_cast<double>(tried) < kSpareFactor * static_cast<double>(set.paths.size());
}

std::optional<Prober::Work> Prober::work_for(const AddressPair& pair, Pair& state, Urgency urgency,
                                             std::int64_t now_ns) {
  if (state.stale) update_progress(pair, state);
  const PairProgress progress = states_[pair].progress;
  if (progress == PairProgress::kNothingToLearn) {
    state.to_verify.clear();
    state.to_refresh.clear();
    return std::nullopt;
  }
  Work work{.urgency = urgency, .ports = {}};
  const auto add = [&](std::uint16_t port) {
    if (work.ports.size() >= kBatchPorts || state.in_flight.contains(port)) return;
    const auto refused = state.refused.find(port);
    if (refused != state.refused.end() && now_ns < refused->second.not_before_ns) {
      const std::int64_t when = refused->second.not_before_ns;
      state.wake_ns = state.wake_ns == 0 ? when : std::min(state.wake_ns, when);
      wake_ns_ = wake_ns_ == 0 ? when : std::min(wake_ns_, when);
      return;
    }
    work.ports.push_back(port);
  };
  switch (urgency) {
    case Urgency::kVerify:
      std::ranges::for_each(state.to_verify, add);
      break;
    case Urgency::kInUse:
      for (const std::uint16_t port : state.target.ports_in_use) {
        if (port >= 1 && knowledge_->way(pair, port).status == ComposedPath::Status::kPartlyKnown) add(port);
      }
      break;
    case Urgency::kRecheck:
      std::ranges::for_each(knowledge_->ports_to_check(pair), add);
      break;
    case Urgency::kRefresh:
      std::ranges::for_each(state.to_refresh, add);
      break;
    case Urgency::kCover:
    case Urgency::kSpare:
      if (urgency == Urgency::kCover ? progress != PairProgress::kExploring : !state.wants_spares) break;
      for (const std::uint16_t port :
           knowledge_->untried_ports(pair, kBatchPorts + state.in_flight.size() + state.refused.size())) {
        if (!state.refused.contains(port)) add(port);  // others may do as well
      }
      break;
  }
  if (work.ports.empty()) return std::nullopt;
  return work;
}

std::vector<SwitchCost> Prober::costs_of(const std::vector<HopToLearn>& hops, double probes_each) const {
  std::map<NodeId, double> sum;
  for (const HopToLearn& hop : hops) {
    for (const NodeId node : hop.answering) sum[node] += probes_each / static_cast<double>(hop.answering.size());
  }
  std::vector<SwitchCost> costs;
  for (const auto& [node, answers] : sum) costs.push_back({.node = node, .answers = answers});
  return costs;
}

bool Prober::start(const AddressPair& pair, Pair& state, const Work& work, std::int64_t now_ns,
                   std::vector<Outgoing>& out) {
  Request request;
  request.pair = pair;
  request.node = state.target.node;
  request.hops = knowledge_->hops_to_learn(pair);
  if (request.hops.empty()) return true;
  const std::vector<SwitchCost> costs = costs_of(request.hops, static_cast<double>(work.ports.size()));
  if (!budget_.take(costs, now_ns)) return false;
  std::size_t fewest_answering = request.hops.front().answering.size();
  for (const HopToLearn& hop : request.hops) fewest_answering = std::min(fewest_answering, hop.answering.size());
  const double pace =
      std::max(1.0, budget_.answers_per_s() * static_cast<double>(std::max<std::size_t>(1, fewest_answering)));
  const auto probes = static_cast<std::uint32_t>(work.ports.size() * request.hops.size());

  Outgoing message{.node = request.node, .message = {}};
  v1::ProbeRequest& ask = *message.message.mutable_probe_request();
  ask.set_id(next_id_);
  *ask.mutable_flow() = make_flow_key(state.target.flow, state.target.ifindex);
  ask.set_flow_label(state.target.flow_label);
  for (const std::uint16_t port : work.ports) ask.add_ports(port);
  for (const HopToLearn& hop : request.hops) ask.add_ttls(hop.ttl);
  ask.set_probes_per_s(static_cast<std::uint32_t>(std::min(pace, 1e6)));
  ask.set_attempts(options_.attempts);
  ask.set_timeout_ms(options_.timeout_ms);
  out.push_back(std::move(message));

  request.ports.insert(work.ports.begin(), work.ports.end());
  request.charged = probes;
  const auto pacing_ns = static_cast<std::int64_t>(static_cast<double>(probes) * options_.attempts / pace * 1e9);
  request.deadline_ns =
      now_ns + kAnswerSlackNs + pacing_ns + std::int64_t{options_.attempts} * options_.timeout_ms * kNsPerMs;
  state.in_flight.insert(work.ports.begin(), work.ports.end());
  for (const std::uint16_t port : work.ports) {
    state.to_verify.erase(port);
    state.to_refresh.erase(port);
  }
  request.urgent = work.urgency <= Urgency::kInUse;
  ++state.requests;
  state.urgent += request.urgent ? 1 : 0;
  requests_.emplace(next_id_++, std::move(request));
  return true;
}

void Prober::rouse_those_refused(std::int64_t now_ns) {
  if (wake_ns_ == 0 || now_ns < wake_ns_) return;
  wake_ns_ = 0;
  for (auto& [pair, state] : pairs_) {
    if (state.wake_ns == 0) continue;
    if (now_ns >= state.wake_ns) {
      state.wake_ns = 0;
      rouse(pair, state);
    } else {
      wake_ns_ = wake_ns_ == 0 ? state.wake_ns : std::min(wake_ns_, state.wake_ns);
    }
  }
}

std::vector<Outgoing> Prober::next(std::int64_t now_ns) {
  expire(now_ns);
  plan_refresh(now_ns);
  std::vector<Outgoing> out;
  struct Stage {
    Urgency urgency;
    bool data;
  };
  // In the order of use: what verifies or places data now, then what a plan could use, then the rest.
  static constexpr std::array kStages{
      Stage{Urgency::kVerify, true},  Stage{Urgency::kInUse, true},   Stage{Urgency::kCover, true},
      Stage{Urgency::kInUse, false},  Stage{Urgency::kRecheck, true}, Stage{Urgency::kSpare, true},
      Stage{Urgency::kCover, false},  Stage{Urgency::kVerify, false}, Stage{Urgency::kRecheck, false},
      Stage{Urgency::kRefresh, true}, Stage{Urgency::kRefresh, false}};
  rouse_those_refused(now_ns);
  std::set<AddressPair> at_work;
  std::map<std::string, std::size_t> in_flight;
  for (const auto& [id, request] : requests_) ++in_flight[request.node];
  for (const Stage& stage : kStages) {
    auto turn = last_served_ ? awake_.upper_bound(*last_served_) : awake_.begin();
    for (std::size_t served = 0; served < awake_.size(); ++served, ++turn) {
      if (turn == awake_.end()) turn = awake_.begin();
      const AddressPair& pair = turn->first;
      Pair& state = *turn->second;
      const bool busy = stage.urgency <= Urgency::kInUse ? state.urgent > 0 : state.requests > state.urgent;
      if (state.target.data != stage.data) continue;
      if (busy || now_ns < state.not_before_ns || in_flight[state.target.node] >= kRequestsANode) {
        at_work.insert(pair);
        continue;
      }
      const auto work = work_for(pair, state, stage.urgency, now_ns);
      if (!work) continue;
      at_work.insert(pair);
      if (!start(pair, state, *work, now_ns, out)) return out;  // nothing of less use may take what is left
      ++in_flight[state.target.node];
      last_served_ = pair;
    }
  }
  std::erase_if(awake_, [&](const auto& entry) {
    Pair& state = *entry.second;
    state.quiet = !at_work.contains(entry.first) && state.requests == 0 && !state.stale;
    return state.quiet;
  });
  return out;
}

bool Prober::learn(Request& request, std::uint16_t port, bool all, std::int64_t now_ns) {
  const auto& answers = request.answers[port];
  if (!all && answers.size() < request.hops.size()) return false;
  bool taught = false;
  bool contradiction = false;
  for (const auto& [ttl, responder] : answers) {  // deeper answers need the hops before them
    if (!responder) break;
    const auto lesson = knowledge_->learn_probe(request.pair, port, ttl, *responder, now_ns);
    if (!lesson) {
      ++counters_.refused;
      if (!contradiction) refuse(request, port, *responder, now_ns);  // else it may fit once that is settled
      return taught;
    }
    request.accepted = true;
    const auto behind = routing_->fabric().find_address(*responder);
    if (ttl > 1 && behind) {
      answers_.push_back({.pair = request.pair, .port = port, .link = routing_->fabric().port(*behind).in});
    }
    taught |= *lesson != Lesson::kNothing;
    if (*lesson != Lesson::kContradicted) continue;
    contradiction = true;
    contradicted(request.pair, now_ns);
  }
  const auto pair = pairs_.find(request.pair);
  if (pair != pairs_.end() && request.accepted) pair->second.refused.erase(port);
  return taught;
}

void Prober::refuse(const Request& request, std::uint16_t port, const IpAddress& responder, std::int64_t now_ns) {
  auto& by = counters_.refused_by;
  if (by.contains(responder) || by.size() < kRespondersKept) ++by[responder];
  const Fabric& fabric = routing_->fabric();
  if (const auto at = fabric.find_address(responder)) {  // a switch that the request was not charged to
    const SwitchCost cost{.node = fabric.port(*at).node, .answers = static_cast<double>(request.hops.size())};
    budget_.charge({&cost, 1}, now_ns);
  }
  const auto found = pairs_.find(request.pair);
  if (found == pairs_.end()) return;
  Refusal& refusal = found->second.refused[port];
  refusal.back_off_ns = std::clamp(2 * refusal.back_off_ns, kFirstRefusedNs, kLongestRefusedNs);
  refusal.not_before_ns = now_ns + refusal.back_off_ns;
}

void Prober::contradicted(const AddressPair& pair, std::int64_t now_ns) {
  const auto found = pairs_.find(pair);
  if (found == pairs_.end()) return;
  Pair& state = found->second;
  if (state.rechecked_ns != 0 && now_ns - state.rechecked_ns < kLeastRecheckNs) return;
  state.rechecked_ns = states_[pair].recheck_ns = now_ns;
  const auto from = routing_->fabric().find_address(pair.source);
  const auto to = routing_->fabric().find_address(pair.destination);
  if (!from || !to) return;
  const PathSet set = routing_->paths(*from, *to, kPathLimit);
  for (const PathPorts& known : knowledge_->ports_by_path(pair, set.paths)) {
    state.to_verify.insert(known.ports.begin(), known.ports.end());
    state.to_verify.insert(known.maybe.begin(), known.maybe.end());
  }
  for (auto& [other, its] : pairs_) {
    if (its.rechecked_ns != 0 && now_ns - its.rechecked_ns < kLeastRecheckNs) continue;
    its.refused.clear();
    its.to_refresh.insert(its.target.ports_in_use.begin(), its.target.ports_in_use.end());
    rouse(other, its);
  }
}

void Prober::plan_refresh(std::int64_t now_ns) {
  constexpr std::int64_t kLookNs = 1000 * kNsPerMs;
  if (now_ns - refresh_planned_ns_ < kLookNs) return;
  refresh_planned_ns_ = now_ns;
  for (auto& [pair, state] : pairs_) {
    if (now_ns - state.refreshed_ns < kRefreshNs) continue;
    state.refreshed_ns = now_ns;
    state.to_refresh = state.target.ports_in_use;
    rouse(pair, state);
  }
}

Result<bool> Prober::take_result(const std::string& node, const v1::ProbeResult& result, std::int64_t now_ns) {
  const auto found = requests_.find(result.id());
  if (found == requests_.end() || found->second.node != node) return false;  // answered too late, or before a reconnect
  Request& request = found->second;
  bool taught = false;
  for (const v1::ProbeAnswer& answer : result.answers()) {
    std::optional<IpAddress> responder;
    if (!answer.responder().empty() && !answer.unreachable()) {  // who has no way on may be any hop before
      auto address = IpAddress::from_bytes(
          {reinterpret_cast<const std::uint8_t*>(answer.responder().data()), answer.responder().size()});
      if (!address) return with_context(address.error(), "responder of a probe answer");
      responder = *address;
    }
    if (answer.port() > 0xFFFF || !request.ports.contains(static_cast<std::uint16_t>(answer.port()))) continue;
    const auto port = static_cast<std::uint16_t>(answer.port());
    request.answered |= responder.has_value();
    request.answers[port].insert_or_assign(answer.ttl(), responder);
    if (request.answers[port].size() == request.hops.size()) taught |= learn(request, port, false, now_ns);
  }
  counters_.sent += result.sent();
  counters_.lost += result.lost();
  request.sent += result.sent();
  const auto pair = pairs_.find(request.pair);
  if (pair != pairs_.end()) {
    pair->second.stale = true;
    rouse(pair->first, pair->second);
    if (!result.error().empty()) states_[request.pair].problem = result.error();
  }
  if (result.done() || !result.error().empty()) {
    for (auto& [port, answers] : request.answers) {
      if (answers.size() < request.hops.size()) taught |= learn(request, port, true, now_ns);
    }
    finish(found->first, request, now_ns);
  }
  return taught;
}

/// A pair that was dropped and came back meanwhile knows nothing of the request.
void Prober::forget_request(Pair& pair, const Request& request) {
  for (const std::uint16_t port : request.ports) pair.in_flight.erase(port);
  if (pair.requests > 0) --pair.requests;
  if (request.urgent && pair.urgent > 0) --pair.urgent;
}

void Prober::finish(std::uint64_t id, Request& request, std::int64_t now_ns) {
  if (request.sent > request.charged) {  // retries
    const double more = static_cast<double>(request.sent - request.charged) / static_cast<double>(request.hops.size());
    budget_.charge(costs_of(request.hops, more), now_ns);
  }
  const auto found = pairs_.find(request.pair);
  if (found != pairs_.end()) {
    Pair& pair = found->second;
    forget_request(pair, request);
    pair.stale = true;
    rouse(found->first, pair);
    PairState& shown = states_[request.pair];
    if (pair.requests == 0 && pair.to_verify.empty()) shown.recheck_ns = 0;
    shown.silent = !request.answered;
    if (request.answered) shown.problem.clear();
    if (request.accepted) {
      pair.back_off_ns = 0;
    } else {
      pair.back_off_ns = std::clamp(2 * pair.back_off_ns, kFirstBackOffNs, kLongestBackOffNs);
      pair.not_before_ns = now_ns + pair.back_off_ns;
    }
  }
  requests_.erase(id);
}

void Prober::expire(std::int64_t now_ns) {
  std::vector<std::uint64_t> late;
  for (const auto& [id, request] : requests_) {
    if (now_ns >= request.deadline_ns) late.push_back(id);
  }
  for (const std::uint64_t id : late) finish(id, requests_.at(id), now_ns);
}

void Prober::disconnected(const std::string& node) {
  for (auto request = requests_.begin(); request != requests_.end();) {
    if (request->second.node != node) {
      ++request;
      continue;
    }
    const auto found = pairs_.find(request->second.pair);
    if (found != pairs_.end()) {
      forget_request(found->second, request->second);
      found->second.not_before_ns = found->second.back_off_ns = 0;
      rouse(found->first, found->second);
    }
    request = requests_.erase(request);
  }
}

}  // namespace te
