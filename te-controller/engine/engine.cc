// SPDX-License-Identifier: Apache-2.0
#include "te-controller/engine/engine.h"

#include <algorithm>
#include <set>
#include <utility>

#include "common/base/units.h"

namespace te {
namespace {

constexpr std::int64_t kTargetsNs = 1000 * kNsPerMs;  // data flows turn idle with time alone
constexpr std::int64_t kTargetsRestNs = 2000;         // for each flow: they are all looked at
constexpr std::int64_t kCycleRestNs = 10'000;         // the same: a snapshot of 25,000 is taken in a tenth of that
constexpr std::int64_t kForgetNs = 1000 * kNsPerMs;
constexpr std::int64_t kPairAgeNs = 3'600'000 * kNsPerMs;  // ECMP knowledge of pairs without flows
constexpr std::size_t kEventKinds = 64;

std::string middle_nodes(const Fabric& fabric, std::span<const LinkId> links) {
  std::string text;
  for (std::size_t i = 0; i + 1 < links.size(); ++i) {
    text += (text.empty() ? "" : ",") + fabric.node(fabric.link(links[i]).to).name;
  }
  return text;
}

std::vector<LinkId> links_of(const traffic::PlanInput& input, traffic::PathIndex path) {
  if (path == traffic::kUnknownPath) return {};
  const auto links = input.paths.links(path);
  return {links.begin(), links.end()};
}

}  // namespace

Engine::Engine(Fabric fabric, const EngineOptions& options, std::int64_t now_ns, std::int64_t wall_us)
    : options_(options),
      fabric_(std::make_unique<Fabric>(std::move(fabric))),
      routing_(*fabric_),
      knowledge_(routing_),
      fleet_(*fabric_),
      attendance_(fleet_, now_ns, options.report_interval_ms * kNsPerMs),
      prober_(routing_, knowledge_, options.probing),
      link_watch_(
          {.fabric = fabric_.get(), .fleet = &fleet_, .knowledge = &knowledge_, .prober = &prober_, .trials = &trials_},
          options.probing, options.report_interval_ms * kNsPerMs),
      trials_(routing_),
      steering_(static_cast<std::uint64_t>(wall_us)),
      mover_({.fabric = fabric_.get(),
              .fleet = &fleet_,
              .knowledge = &knowledge_,
              .prober = &prober_,
              .steering = &steering_,
              .ledger = &ledger_},
             options.planning.cooldown_ms * kNsPerMs, options.report_interval_ms * kNsPerMs),
      builder_({.fleet = &fleet_,
                .routing = &routing_,
                .knowledge = &knowledge_,
                .mover = &mover_,
                .trials = &trials_,
                .link_watch = &link_watch_,
                .overrides = &overrides_},
               options.planning),
      mode_(options.initial_mode),
      started_ns_(now_ns),
      wall_minus_now_us_(wall_us - now_ns / 1000) {}

double Engine::wall_s(std::int64_t now_ns) const {
  return static_cast<double>(now_ns / 1000 + wall_minus_now_us_) * 1e-6;
}

void Engine::restore(const PersistentState& state, std::int64_t /*now_ns*/) {
  if (state.mode) mode_ = *state.mode;
  if (state.resume_mode) resume_mode_ = *state.resume_mode;
  steering_.restore(state.steering);
  ledger_.restore(state.moves);
  std::vector<v1::OverrideView> overrides = state.overrides;
  for (v1::OverrideView& one : overrides) {  // the file may name the ends of a cable otherwise than then
    if (one.kind() == Overrides::kDrain) one.set_target(drain_name(*fabric_, one.target()));
  }
  overrides_.restore(overrides);
  link_watch_.set_drained(drained_links());
  if (mode_ == Mode::kPaused) steering_.clear_all();
}

v1::HelloReply Engine::on_hello(const std::string& node, const v1::Hello& hello, std::int64_t now_ns) {
  v1::HelloReply reply;
  reply.set_report_interval_ms(static_cast<std::uint32_t>(options_.report_interval_ms));
  // Nothing changes before all of the Hello is found good: a session of the node may be there and go on.
  auto accepted = fleet_.may_connect(node, hello);
  if (accepted) accepted = steering_.connected(node, hello);
  if (accepted) accepted = mover_.take_hello(node, hello, now_ns);
  if (accepted) attendance_.leaves(node, now_ns);  // where this session takes the place of one that did not end
  if (accepted) accepted = fleet_.connect(node, hello, now_ns);
  if (!accepted) {
    reply.set_reason(accepted.error().message);
    return reply;
  }
  connected_.insert(node);
  prober_.disconnected(node);  // what an older session was asked is lost
  reply.set_accepted(true);
  targets_stale_ = plan_stale_ = true;
  return reply;
}

void Engine::on_gone(const std::string& node, std::int64_t now_ns) {
  attendance_.leaves(node, now_ns);
  fleet_.disconnect(node, now_ns);
  connected_.erase(node);
  prober_.disconnected(node);
  link_watch_.gone(node, now_ns);
  targets_stale_ = plan_stale_ = true;
}

Result<void> Engine::on_message(const std::string& node, const v1::AgentMessage& message, std::int64_t now_ns) {
  switch (message.body_case()) {
    case v1::AgentMessage::kFlows: {
      const auto news = read_flow_update(message.flows());
      return news ? on_flows(node, *news, now_ns) : news.error();
    }
    case v1::AgentMessage::kProbeResult: {
      note_answers(message.probe_result());
      if (LinkWatch::is_ours(message.probe_result())) {
        auto taken = link_watch_.take_result(node, message.probe_result(), now_ns);
        watch_links(now_ns);
        return taken;
      }
      auto taught = prober_.take_result(node, message.probe_result(), now_ns);
      if (!taught) return std::move(taught).error();
      for (const Prober::Answer& answer : prober_.take_answers()) {
        trials_.take(answer.pair, answer.port, answer.link, now_ns);
      }
      plan_stale_ |= *taught;
      mover_.observe(now_ns);
      return {};
    }
    case v1::AgentMessage::kSteering:
      plan_stale_ = true;
      return mover_.take_report(node, message.steering(), now_ns);
    case v1::AgentMessage::kEvent:
      if (events_.contains(message.event().kind()) || events_.size() < kEventKinds) ++events_[message.event().kind()];
      return {};
    case v1::AgentMessage::kSources:
      targets_stale_ = plan_stale_ = true;
      return fleet_.take_sources(node, message.sources());
    case v1::AgentMessage::kLinks: {
      auto taken = fleet_.take_links(node, message.links());
      if (!taken) return taken;
      if (link_watch_.take_links(node, message.links())) watch_links(now_ns);  // most only bring counters
      return {};
    }
    case v1::AgentMessage::kHello:
      return Error{"a second Hello in one session"};
    case v1::AgentMessage::BODY_NOT_SET:
      return {};  // of a newer version
  }
  return {};
}

Result<void> Engine::on_flows(const std::string& node, const FlowNews& news, std::int64_t now_ns) {
  auto change = fleet_.apply(node, news, now_ns);
  if (!change) return std::move(change).error();
  take_change(*change);
  mover_.observe(now_ns);
  return {};
}

void Engine::take_change(const Fleet::Change& change) {
  targets_stale_ |= change.flows || change.ports;
  plan_stale_ |= change.flows || change.ports;
  for (const FlowId& flow : change.ended) mover_.flow_ended(flow);
}

void Engine::tick(std::int64_t now_ns, std::int64_t wall_us) {
  wall_minus_now_us_ = wall_us - now_ns / 1000;
  if (now_ns - forget_ns_ >= kForgetNs) forget(now_ns);
  expire_overrides(now_ns);
  watch_links(now_ns);
  try_switches(now_ns);
  const std::size_t under_way = mover_.under_way();
  mover_.observe(now_ns);
  plan_stale_ |= mover_.under_way() != under_way;
}

void Engine::forget(std::int64_t now_ns) {
  forget_ns_ = now_ns;
  take_change(fleet_.expire(now_ns));
  knowledge_.forget_unused(now_ns, kPairAgeNs);
  mover_.forget(now_ns);
  std::vector<std::pair<std::string, SteeringKey>> unused;
  decltype(steering_used_ns_) used;
  for (const auto& [node, state] : fleet_.nodes()) {
    for (const auto& [key, port] : steering_.desired(node)) {
      const std::pair place{node, key};
      const auto before = steering_used_ns_.find(place);
      const bool in_use = before == steering_used_ns_.end() || !state.connected || fleet_.find(key.flow) != nullptr;
      const std::int64_t since = in_use ? now_ns : before->second;
      if (now_ns - since > kKeepSteeringNs) {
        unused.push_back(place);
      } else {
        used.emplace(place, since);
      }
    }
  }
  for (const auto& [node, key] : unused) steering_.erase(node, key);
  steering_used_ns_ = std::move(used);
}

void Engine::renew_targets(std::int64_t now_ns) {
  targets_stale_ = false;
  targets_ns_ = now_ns;
  std::vector<ProbeTarget> targets;
  AddressPair pair;  // flows of a pair follow each other
  bool has_way = false;
  for (const auto& [id, flow] : fleet_.flows()) {
    const FlowKind kind = flow.kind(now_ns);
    if (kind == FlowKind::kIdle || fleet_.sender(flow) == nullptr) continue;
    if (pair != id.pair()) {
      pair = id.pair();
      has_way =
          fabric_->find_address(id.source) && fabric_->find_address(id.destination) && !link_watch_.is_cut_off(pair);
    }
    if (!has_way) continue;
    const bool first = targets.empty() || targets.back().pair != pair;
    if (first) targets.emplace_back();
    ProbeTarget& target = targets.back();
    if (first || (kind == FlowKind::kData && !target.data)) {
      target.pair = pair;
      target.node = flow.egress->node;
      target.flow = id;
      target.ifindex = flow.egress->report.ifindex;
      target.flow_label = flow.egress->report.flow_label;
      target.data = kind == FlowKind::kData;
    }
    if (kind == FlowKind::kData || target.ports_in_use.size() < Prober::kBatchPorts) {
      target.ports_in_use.insert(flow.wire_port());
    }
  }
  prober_.set_targets(std::move(targets), now_ns);
}

bool Engine::paths_explored(std::int64_t now_ns) const {
  return std::ranges::all_of(prober_.pairs(), [&](const auto& entry) {
    const PairState& pair = entry.second;
    const std::int64_t since_ns = std::max(pair.since_ns, pair.recheck_ns);
    const bool open = pair.progress == PairProgress::kExploring || pair.recheck_ns != 0;
    return !pair.data || !open || pair.silent || !pair.problem.empty() || now_ns - since_ns >= kExploreLimitNs;
  });
}

std::shared_ptr<const PlanJob> Engine::begin_cycle(std::int64_t now_ns) {
  const std::int64_t since = now_ns - planned_ns_;
  const auto rest_ns = static_cast<std::int64_t>(fleet_.flows().size()) * kCycleRestNs;
  const std::int64_t interval_ns = std::max(options_.planning.interval_ms * kNsPerMs, planned_ns_ == 0 ? 0 : rest_ns);
  // Without news only rates change, and they come once a report interval.
  const bool due = since >= (plan_stale_ ? interval_ns : std::max(interval_ns, options_.report_interval_ms * kNsPerMs));
  if (planning_ || (!due && plan_cycles_ > 0)) return nullptr;
  if (targets_stale_) renew_targets(now_ns);  // so that paths_explored() counts new pairs
  planning_ = true;
  plan_stale_ = false;
  planned_ns_ = now_ns;
  if (!snapshot_) snapshot_ = std::make_shared<const Fabric>(*fabric_);
  return builder_.build(snapshot_, now_ns);
}

void Engine::finish_cycle(PlanOutcome outcome, std::int64_t now_ns) {
  planning_ = false;
  ++plan_cycles_;
  last_plan_ = std::move(outcome);
  held_by_store_ = !store_problem_.empty();
  if (mode_ == Mode::kAct) carry_out(!mover_.may_start(now_ns) || !hold(now_ns).empty(), now_ns);
}

std::string Engine::hold(std::int64_t now_ns) const {
  if (!store_problem_.empty()) return "decisions are not stored: " + store_problem_;
  const std::string missing = attendance_.missing(now_ns);
  if (!missing.empty()) return "the agent of " + missing + " is expected back, and others may be";
  return paths_explored(now_ns) ? "" : "paths are explored";
}

void Engine::set_store_problem(const std::string& problem) {
  store_problem_ = problem;
  if (problem.empty() && std::exchange(held_by_store_, false)) plan_stale_ = true;
}

v1::MoveView Engine::record_of(const PlanOutcome& outcome, const traffic::PlannedMove& move) const {
  const traffic::PlanInput& input = outcome.job->input;
  const FlowId& id = outcome.job->flows[move.flow];
  v1::MoveView view;
  view.set_flow_id(id.short_id());
  view.set_flow(input.flows[move.flow].label);
  view.set_from_port(move.from_port);
  view.set_to_port(move.to_port);
  view.set_from_path(middle_nodes(*fabric_, links_of(input, move.from_path)));
  view.set_to_path(middle_nodes(*fabric_, links_of(input, move.to_path)));
  view.set_reason(move.forced && move.from_path != traffic::kUnknownPath
                      ? why_left(links_of(input, move.from_path), move.reason)
                      : move.reason);
  view.set_forced(move.forced);
  view.set_predicted_gain_bps(move.predicted_gain_bps);
  view.set_refuted_by(move.refuted_by);
  view.set_state(std::string(traffic::to_string(traffic::MoveState::kProposed)));
  return view;
}

/// The first of a way's links that takes no flows, with what is known of it; `otherwise`: all of them do by now.
std::string Engine::why_left(const std::vector<LinkId>& way, const std::string& otherwise) const {
  for (const LinkId link : way) {
    const LinkState state = fabric_->link(link).state;
    if (state == LinkState::kHealthy || state == LinkState::kUnknown) continue;
    const diagnosis::LinkStatus& health = link_watch_.status(link);
    const bool well = health.condition == diagnosis::LinkCondition::kHealthy ||
                      health.condition == diagnosis::LinkCondition::kUnknown;
    if (well) return fabric_->link_name(link) + " is drained by an operator";
    return fabric_->link_name(link) + " is " + std::string(to_string(health.condition)) +
           (health.evidence.empty() ? "" : ": " + health.evidence);
  }
  return otherwise;
}

MoveOrder Engine::order_for(const traffic::PlannedMove& move, std::int64_t now_ns) const {
  const traffic::PlanInput& input = last_plan_.job->input;
  MoveOrder order{.flow = last_plan_.job->flows[move.flow],
                  .from_port = move.from_port,
                  .to_port = move.to_port,
                  .from_links = links_of(input, move.from_path),
                  .to_links = links_of(input, move.to_path),
                  .record = record_of(last_plan_, move)};
  order.record.set_wall_s(wall_s(now_ns));
  return order;
}

/// What the snapshot does not fit any more is left to the next cycle.
void Engine::carry_out(bool forced_only, std::int64_t now_ns) {
  // While flows find their new rates after a link changed, no rate can judge a move.
  const bool settling = links_changed_ns_ != 0 && now_ns - links_changed_ns_ < kSettleNs;
  for (const traffic::PlannedMove& move : last_plan_.plan.moves) {
    const Flow* flow = fleet_.find(last_plan_.job->flows[move.flow]);
    const bool as_planned = flow != nullptr && mover_.expected_port(*flow, now_ns) == move.from_port;
    if (move.forced || (settling && !forced_only)) {
      if (as_planned && mover_.force(order_for(move, now_ns), now_ns)) plan_stale_ = true;
      continue;
    }
    if (forced_only || !as_planned || !builder_.immovable(*flow, now_ns).empty()) break;
    if (mover_.start(order_for(move, now_ns), now_ns)) plan_stale_ = true;
  }
}

void Engine::set_mode(Mode mode) {
  mode_ = mode;
  mode_changed_ = true;
  plan_stale_ = true;
  planned_ns_ = 0;  // plan at once
}

Result<void> Engine::set_acting(bool on, std::int64_t /*now_ns*/) {
  if (mode_ == Mode::kPaused && on)
    return Error{"paused; 'tectl resume' goes back to the mode before, 'tectl act off' to observe"};
  set_mode(on ? Mode::kAct : Mode::kObserve);
  return {};
}

bool Engine::steered(const Flow& flow) const {
  if (!flow.egress) return false;
  const SteeringKey key{.flow = flow.id, .ifindex = flow.egress->report.ifindex};
  return steering_.desired(flow.egress->node, key).has_value();
}

void Engine::pause(std::int64_t now_ns) {
  if (mode_ != Mode::kPaused) resume_mode_ = mode_;
  mover_.supersede_all("paused by the operator");
  std::vector<const Flow*> released;
  for (const auto& [id, flow] : fleet_.flows()) {
    if (steered(flow)) released.push_back(&flow);
  }
  steering_.clear_all();
  for (const Flow* flow : released) {
    v1::MoveView record;
    record.set_flow_id(flow->id.short_id());
    record.set_flow(label_of(*fabric_, flow->id));
    record.set_from_port(flow->wire_port());
    record.set_to_port(flow->source_port());
    record.set_reason("paused by the operator: all steering is taken back");
    record.set_wall_s(wall_s(now_ns));
    mover_.follow_release(*flow, std::move(record), now_ns);
  }
  set_mode(Mode::kPaused);
}

Result<void> Engine::resume(std::int64_t /*now_ns*/) {
  if (mode_ != Mode::kPaused) return Error{"not paused; the mode is " + std::string(to_string(mode_))};
  set_mode(resume_mode_);
  return {};
}

std::vector<Outgoing> Engine::take_outgoing(std::int64_t now_ns) {
  const auto least_ns = std::min(kTargetsNs, static_cast<std::int64_t>(fleet_.flows().size()) * kTargetsRestNs);
  if (now_ns - targets_ns_ >= (targets_stale_ ? least_ns : kTargetsNs)) renew_targets(now_ns);
  std::vector<Outgoing> out = steering_.take_outgoing(connected_);
  std::ranges::move(link_watch_.take_outgoing(), std::back_inserter(out));
  std::vector<Outgoing> probes = prober_.next(now_ns);
  std::ranges::move(probes, std::back_inserter(out));
  return out;
}

PersistentChange Engine::take_changes() {
  PersistentChange change;
  if (std::exchange(mode_changed_, false)) {
    change.mode = mode_;
    change.resume_mode = resume_mode_;
  }
  change.steering = steering_.take_changes();
  change.moves = ledger_.take_changes();
  change.overrides = overrides_.take_changes();
  return change;
}

}  // namespace te
