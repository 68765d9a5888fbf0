// SPDX-License-Identifier: Apache-2.0
#include "te-controller/engine/mover.h"

#include <algorithm>
#include <limits>
#include <set>
#include <utility>

#include "common/base/units.h"
#include "te-controller/engine/active_rate.h"

namespace te {

using traffic::MoveEvent;
using traffic::MoveState;

namespace {

constexpr std::int64_t kReportLimitNs = 5000 * kNsPerMs;   // for the agent to say that it is in force
constexpr std::int64_t kAwayLimitNs = 10'000 * kNsPerMs;   // for an agent to come back with it
constexpr std::int64_t kWireLimitNs = 3000 * kNsPerMs;     // for an active flow to show its new port
constexpr std::int64_t kPathLimitNs = 3000 * kNsPerMs;     // for the fresh probe
constexpr std::int64_t kJudgeLimitNs = 30'000 * kNsPerMs;  // a flow that pauses this long is not judged by its rate
constexpr std::int64_t kDeadLimitNs = 5000 * kNsPerMs;     // for a moved flow to send again while others do
constexpr std::int64_t kExpectationNs = 2000 * kNsPerMs;   // then what is seen on the wire counts again
constexpr std::size_t kIntervalsBefore = 4;
constexpr int kWorseToTakeBack = 2;  // verdicts in a row
constexpr std::uint64_t kAnyRevision = std::numeric_limits<std::uint64_t>::max();

/// Same links, or where parallel links are not told apart the same switches.
bool same_way(const Fabric& fabric, const ComposedPath& seen, const std::vector<LinkId>& planned) {
  if (seen.links.size() != planned.size()) return false;
  for (std::size_t i = 0; i < planned.size(); ++i) {
    const Link& a = fabric.link(seen.links[i]);
    const Link& b = fabric.link(planned[i]);
    const bool parallel = seen.status == ComposedPath::Status::kOneOfParallel && a.from == b.from && a.to == b.to;
    if (seen.links[i] != planned[i] && !parallel) return false;
  }
  return true;
}

}  // namespace

struct Mover::Rates {
  std::map<FlowId, traffic::RateChange> moved;
  std::vector<traffic::RateChange> affected;
  std::vector<traffic::RateChange> untouched;
};

bool Mover::may_start(std::int64_t now_ns) const {
  return moves_.empty() || (window_ns_ == 0 && now_ns - group_ns_ < kGroupOpenNs);
}

void Mover::expect(const FlowId& flow, std::uint16_t port, std::int64_t now_ns) {
  expected_[flow] = {.port = port, .until_ns = now_ns + kExpectationNs};
}

std::uint16_t Mover::expected_port(const Flow& flow, std::int64_t now_ns) const {
  const auto found = expected_.find(flow.id);
  return found != expected_.end() && now_ns < found->second.until_ns ? found->second.port : flow.wire_port();
}

std::string Mover::hold(const Flow& flow, std::int64_t now_ns) const {
  if (moves_.contains(flow.id) || follower_.holds(flow.id)) return "a move of it is being checked";
  if (cool_down_.size() == 0) return {};
  const std::int64_t left = cool_down_.left_ns(flow.id.short_id(), now_ns);
  if (left <= 0) return {};
  const auto tenths = (left + 99 * kNsPerMs) / (100 * kNsPerMs);
  return "in cool-down, " + std::to_string(tenths / 10) + "." + std::to_string(tenths % 10) + " s left";
}

void Mover::open_group(std::int64_t now_ns) {
  group_ns_ = now_ns;
  window_ns_ = 0;
  worse_in_a_row_ = 0;
  before_.clear();
  std::size_t bursts = 0;
  for (const auto& [id, flow] : parts_.fleet->flows()) {
    if (flow.kind(now_ns) != FlowKind::kData) continue;
    const ComposedPath path = parts_.knowledge->compose(id.pair(), expected_port(flow, now_ns));
    const FlowEnd& end = flow.measured();
    before_[id] = {.rate_bps = active_rate(end, 0, kIntervalsBefore),
                   .links = path.reaches() ? path.links : std::vector<LinkId>()};
    bursts += bursty(end, kIntervalsBefore) ? 1 : 0;
  }
  intervals_ = 2 * bursts > before_.size() ? kBurstyIntervals : kIntervals;
}

/// Asks the sender's agent for it, and notes it in the ledger.
Mover::Move Mover::send(const MoveOrder& order, const Flow& flow, std::int64_t now_ns) {
  Move move;
  move.node = flow.egress->node;
  move.key = {.flow = order.flow, .ifindex = flow.egress->report.ifindex};
  move.steered_before = parts_.steering->desired(move.node, move.key);
  move.order = order;
  move.sent_ns = now_ns;
  move.number = parts_.ledger->add(order.record);
  if (order.to_port == flow.source_port()) {
    parts_.steering->erase(move.node, move.key);  // its own port leads there: nothing to rewrite
  } else {
    parts_.steering->set(move.node, move.key, order.to_port);
  }
  move.revision = parts_.steering->revision(move.node);
  parts_.ledger->apply(move.number, MoveEvent::kSend, "");
  cool_down_.moved(order.flow.short_id(), now_ns);
  expect(order.flow, order.to_port, now_ns);
  return move;
}

bool Mover::start(const MoveOrder& order, std::int64_t now_ns) {
  const Flow* flow = parts_.fleet->find(order.flow);
  if (flow == nullptr || parts_.fleet->sender(*flow) == nullptr || moves_.contains(order.flow)) return false;
  if (moves_.empty()) open_group(now_ns);
  moves_.emplace(order.flow, send(order, *flow, now_ns));
  return true;
}

bool Mover::force(const MoveOrder& order, std::int64_t now_ns) {
  const Flow* flow = parts_.fleet->find(order.flow);
  if (flow == nullptr || parts_.fleet->sender(*flow) == nullptr || follower_.holds(order.flow)) return false;
  const auto judged = moves_.find(order.flow);
  if (judged != moves_.end()) {
    parts_.ledger->apply(judged->second.number, MoveEvent::kSupersede, "its way was closed meanwhile");
    moves_.erase(judged);
  }
  const Move move = send(order, *flow, now_ns);
  follower_.follow({.number = move.number,
                    .node = move.node,
                    .key = move.key,
                    .revision = move.revision,
                    .port = order.to_port,
                    .verified = "its new port is on the wire",
                    .sent_ns = now_ns});
  parts_.prober->verify(order.flow.pair(), order.to_port);
  return true;
}

void Mover::follow_release(const Flow& flow, v1::MoveView record, std::int64_t now_ns) {
  if (!flow.egress) return;
  const int number = parts_.ledger->add(std::move(record));
  parts_.ledger->apply(number, MoveEvent::kSend, "");
  follower_.follow({.number = number,
                    .node = flow.egress->node,
                    .key = {.flow = flow.id, .ifindex = flow.egress->report.ifindex},
                    .revision = parts_.steering->revision(flow.egress->node),
                    .port = flow.source_port(),
                    .verified = "its own port is on the wire again",
                    .sent_ns = now_ns});
  expect(flow.id, flow.source_port(), now_ns);
}

Result<void> Mover::take_report(const std::string& node, const v1::SteeringReport& report, std::int64_t now_ns) {
  const auto news = parse_steering_report(report);
  if (!news) return news.error();
  take(node, *news, now_ns);
  return {};
}

Result<void> Mover::take_hello(const std::string& node, const v1::Hello& hello, std::int64_t now_ns) {
  SteeringNews news{.revision = kAnyRevision, .programmed = {}, .failures = {}};
  for (const v1::SteeringEntry& entry : hello.steering()) {
    auto parsed = parse_steering_entry(entry);
    if (!parsed) return std::move(parsed).error();
    news.programmed.insert(*parsed);
  }
  take(node, news, now_ns);
  return {};
}

void Mover::take(const std::string& node, const SteeringNews& news, std::int64_t now_ns) {
  follower_.take(node, news, now_ns);
  for (auto& [id, move] : moves_) {
    if (move.node != node || move.state != MoveState::kSent || news.revision < move.revision) continue;
    const auto failed = news.failures.find(move.key);
    if (failed != news.failures.end()) {
      take_back(move, MoveEvent::kFail, "the agent could not: " + failed->second, false, now_ns);
      continue;
    }
    const auto held = news.programmed.find(move.key);
    const auto wanted = parts_.steering->desired(node, move.key);
    const auto have = held == news.programmed.end() ? std::nullopt : std::optional(held->second);
    if (have != wanted) continue;  // still at it
    move.state = MoveState::kProgrammed;
    move.programmed_ns = now_ns;
    parts_.ledger->programmed(move.number, now_ns - move.sent_ns);
  }
  drop_finished();
}

void Mover::end(Move& move, MoveEvent event, const std::string& outcome) {
  move.state = traffic::next_state(move.state, event).value_or(MoveState::kFailed);
  parts_.ledger->apply(move.number, event, outcome);
}

void Mover::take_back(Move& move, MoveEvent event, const std::string& outcome, bool doubt, std::int64_t now_ns) {
  if (move.steered_before) {
    parts_.steering->set(move.node, move.key, *move.steered_before);
  } else {
    parts_.steering->erase(move.node, move.key);
  }
  end(move, event, outcome);
  cool_down_.rolled_back(move.order.flow.short_id(), now_ns);
  expect(move.order.flow, move.order.from_port, now_ns);
  if (!doubt) return;
  parts_.knowledge->doubt(move.order.flow.pair(), move.order.to_port);
  parts_.prober->knowledge_changed();
}

void Mover::look_at_wire(Move& move, std::int64_t now_ns) {
  const Flow* flow = parts_.fleet->find(move.order.flow);
  if (flow == nullptr || !flow->egress || flow->egress->node != move.node || move.seen_ns != 0) return;
  const FleetNode* agent = parts_.fleet->sender(*flow);
  if (agent == nullptr) {  // whether it had time to do it, it says when it comes back
    const bool gone = now_ns - std::max(move.sent_ns, parts_.fleet->node(move.node)->changed_ns) > kAwayLimitNs;
    if (gone) end(move, MoveEvent::kSupersede, "its agent went away before the new port was seen");
    return;
  }
  if (move.state == MoveState::kSent) {
    if (now_ns - std::max(move.sent_ns, agent->changed_ns) > kReportLimitNs) {
      take_back(move, MoveEvent::kFail, "the agent did not report it in force within 5 s", false, now_ns);
    }
    return;
  }
  if (flow->wire_port() == move.order.to_port && flow->egress->reported_ns >= move.sent_ns) {
    move.seen_ns = flow->egress->reported_ns;
    parts_.prober->verify(move.order.flow.pair(), move.order.to_port);
    return;
  }
  const bool active = intervals_since(*flow->egress, move.programmed_ns) >= kIntervals &&
                      active_rate(*flow->egress, move.programmed_ns, Fleet::kHistory) > 0;
  if (active && now_ns - move.programmed_ns > kWireLimitNs) {
    take_back(move, MoveEvent::kFail,
              "packets still leave with port " + std::to_string(flow->wire_port()) +
                  ", though the agent reports the entry in force",
              false, now_ns);
  }
}

void Mover::look_at_path(Move& move, std::int64_t /*now_ns*/) const {
  if (move.path_as_planned || move.seen_ns == 0) return;
  const ComposedPath path = parts_.knowledge->compose(move.order.flow.pair(), move.order.to_port);
  const bool fresh = path.oldest_ns == 0 || path.oldest_ns >= move.seen_ns;
  if (path.reaches() && fresh) move.path_as_planned = same_way(*parts_.fabric, path, move.order.to_links);
}

void Mover::observe(std::int64_t now_ns) {
  std::erase_if(expected_, [&](const auto& entry) { return now_ns >= entry.second.until_ns; });
  follower_.observe(now_ns);
  if (moves_.empty()) return;
  for (auto& [id, move] : moves_) {
    look_at_wire(move, now_ns);
    look_at_path(move, now_ns);
    if (move.path_as_planned == false && !traffic::is_final(move.state)) {
      const traffic::Judgement verdict = traffic::judge_move(
          {.moved = {}, .affected = {}, .untouched = {}, .port_seen = true, .path_as_planned = false}, {});
      take_back(move, MoveEvent::kRollBack, verdict.text, true, now_ns);
    }
  }
  drop_finished();
  if (ready_to_judge(now_ns)) judge(now_ns);
  drop_finished();
}

bool Mover::ready_to_judge(std::int64_t now_ns) const {
  if (moves_.empty()) return false;
  std::int64_t last_seen = 0;
  for (const auto& [id, move] : moves_) {
    const bool overdue = move.state == MoveState::kProgrammed && now_ns - move.programmed_ns > kJudgeLimitNs;
    if (move.seen_ns == 0 && !overdue) return false;
    const bool path_open = !move.path_as_planned && now_ns - move.seen_ns < kPathLimitNs;
    if (path_open && !overdue) return false;
    last_seen = std::max(last_seen, move.seen_ns);
  }
  const std::int64_t from = std::max(last_seen, window_ns_);
  return std::ranges::all_of(moves_, [&](const auto& entry) {
    const Flow* flow = parts_.fleet->find(entry.first);
    const FlowEnd* end = flow == nullptr ? nullptr : parts_.fleet->heard_end(*flow);
    return flow == nullptr || (end != nullptr && intervals_since(*end, from) >= intervals_) ||
           now_ns - from > 2 * static_cast<std::int64_t>(intervals_ + 1) * interval_ns_;  // its agents are away
  });
}

Mover::Rates Mover::measure(std::int64_t /*now_ns*/) const {
  std::set<LinkId> touched;
  for (const auto& [id, move] : moves_) {
    touched.insert(move.order.from_links.begin(), move.order.from_links.end());
    touched.insert(move.order.to_links.begin(), move.order.to_links.end());
  }
  Rates rates;
  for (const auto& [id, before] : before_) {
    const Flow* flow = parts_.fleet->find(id);
    if (flow == nullptr) continue;
    const FlowEnd* end = parts_.fleet->heard_end(*flow);
    if (end == nullptr) continue;  // nobody tells: not known is not stopped
    const traffic::RateChange change{.before_bps = before.rate_bps,
                                     .after_bps = active_rate(*end, window_ns_, Fleet::kHistory)};
    const bool shares = std::ranges::any_of(before.links, [&](LinkId link) { return touched.contains(link); });
    if (moves_.contains(id)) {
      rates.moved.emplace(id, change);
    } else {
      (shares ? rates.affected : rates.untouched).push_back(change);
    }
  }
  return rates;
}

bool Mover::stopped_alone(const Rates& rates, const FlowId& flow) {
  const double idle_bps = traffic::VerifyLimits{}.idle_bps;
  const auto own = rates.moved.find(flow);
  if (own == rates.moved.end() || own->second.before_bps < idle_bps || own->second.after_bps >= idle_bps) return false;
  std::size_t going = 0;
  std::size_t stopped = 0;
  const auto count = [&](const traffic::RateChange& rate) {
    if (rate.before_bps >= idle_bps) ++(rate.after_bps >= idle_bps ? going : stopped);
  };
  for (const auto& [id, rate] : rates.moved) count(rate);
  std::ranges::for_each(rates.affected, count);
  std::ranges::for_each(rates.untouched, count);
  return going > stopped;
}

void Mover::judge(std::int64_t now_ns) {
  if (window_ns_ == 0) {
    for (const auto& [id, move] : moves_) window_ns_ = std::max(window_ns_, move.seen_ns);
  }
  const Rates rates = measure(now_ns);
  struct Verdict {
    Move* move;
    traffic::Judgement judgement;
  };
  std::vector<Verdict> verdicts;
  bool worse = false;
  bool open = false;
  for (auto& [id, move] : moves_) {
    std::vector<traffic::RateChange> affected = rates.affected;
    for (const auto& [other, change] : rates.moved) {
      if (other != id) affected.push_back(change);
    }
    const auto own = rates.moved.find(id);
    const traffic::MoveObservation seen{.moved = own == rates.moved.end() ? traffic::RateChange{} : own->second,
                                        .affected = affected,
                                        .untouched = rates.untouched,
                                        .port_seen = move.seen_ns != 0 ? std::optional(true) : std::nullopt,
                                        .path_as_planned = move.path_as_planned};
    verdicts.push_back({.move = &move, .judgement = traffic::judge_move(seen, {})});
    worse |= verdicts.back().judgement.verdict == traffic::Verdict::kWorse;
    open |= verdicts.back().judgement.verdict == traffic::Verdict::kInconclusive;
  }
  worse_in_a_row_ = worse ? worse_in_a_row_ + 1 : 0;
  if (worse && worse_in_a_row_ < kWorseToTakeBack) {
    window_ns_ = now_ns;  // look again: transients of a move end within an interval or two
    return;
  }
  const bool some_dead =
      std::ranges::any_of(moves_, [&](const auto& entry) { return stopped_alone(rates, entry.first); });
  if (open && !worse && now_ns - group_ns_ < (some_dead ? kDeadLimitNs : kJudgeLimitNs)) return;
  for (Verdict& verdict : verdicts) {
    const traffic::Judgement& judgement = verdict.judgement;
    const bool dead =
        judgement.verdict == traffic::Verdict::kInconclusive && stopped_alone(rates, verdict.move->order.flow);
    if (judgement.verdict == traffic::Verdict::kWorse || dead) {
      take_back(*verdict.move, MoveEvent::kRollBack, judgement.text, judgement.doubt_knowledge, now_ns);
      continue;
    }
    verdict.move->state = MoveState::kVerified;
    parts_.ledger->apply(verdict.move->number, MoveEvent::kVerify, judgement.text);
    cool_down_.verified(verdict.move->order.flow.short_id());
  }
}

void Mover::drop_finished() {
  std::erase_if(moves_, [](const auto& entry) {
    return entry.second.state != MoveState::kSent && entry.second.state != MoveState::kProgrammed;
  });
}

void Mover::flow_ended(const FlowId& flow) {
  const auto found = moves_.find(flow);
  if (found == moves_.end()) return;
  parts_.ledger->apply(found->second.number, MoveEvent::kSupersede, "the flow ended");
  moves_.erase(found);
  expected_.erase(flow);
}

void Mover::forget(std::int64_t now_ns) { cool_down_.prune(now_ns); }

void Mover::supersede_all(const std::string& reason) {
  for (const auto& [id, move] : moves_) parts_.ledger->apply(move.number, MoveEvent::kSupersede, reason);
  moves_.clear();
}

}  // namespace te
