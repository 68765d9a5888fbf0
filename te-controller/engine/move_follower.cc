// SPDX-License-Identifier: Apache-2.0
#include "te-controller/engine/move_follower.h"

#include <utility>

namespace te {

using traffic::MoveEvent;

Result<SteeringNews> parse_steering_report(const v1::SteeringReport& report) {
  SteeringNews news;
  news.revision = report.revision();
  for (const v1::SteeringEntry& entry : report.programmed()) {
    auto parsed = parse_steering_entry(entry);
    if (!parsed) return std::move(parsed).error();
    news.programmed.insert(*parsed);
  }
  for (const v1::SteeringFailure& failure : report.failures()) {
    auto parsed = parse_steering_entry(failure.entry());
    if (!parsed) return std::move(parsed).error();
    news.failures.emplace(parsed->first, failure.reason());
  }
  return news;
}

void MoveFollower::follow(Followed move) {
  const FlowId flow = move.key.flow;
  const auto before = followed_.find(flow);
  if (before != followed_.end() && !before->second.failed) {
    ledger_->apply(before->second.number, MoveEvent::kSupersede, "another move took its place");
  }
  followed_.insert_or_assign(flow, std::move(move));
}

void MoveFollower::take(const std::string& node, const SteeringNews& news, std::int64_t now_ns) {
  for (auto& [id, move] : followed_) {
    if (move.node != node || move.programmed || move.failed || news.revision < move.revision) continue;
    const auto failure = news.failures.find(move.key);
    if (failure != news.failures.end()) {
      move.failed = true;
      move.sent_ns = now_ns;
      ledger_->apply(move.number, MoveEvent::kFail, "the agent could not: " + failure->second);
      continue;
    }
    const auto held = news.programmed.find(move.key);
    const Flow* flow = fleet_->find(id);
    const bool own = flow != nullptr && flow->source_port() == move.port;            // wants no entry
    if (held == news.programmed.end() ? !own : held->second != move.port) continue;  // still at it
    move.programmed = true;
    ledger_->programmed(move.number, now_ns - move.sent_ns);
  }
}

void MoveFollower::observe(std::int64_t now_ns) {
  for (auto followed = followed_.begin(); followed != followed_.end();) {
    const auto& [id, move] = *followed;
    const Flow* flow = fleet_->find(id);
    const std::int64_t age_ns = now_ns - move.sent_ns;
    bool done = true;
    if (move.failed) {
      done = age_ns > kAgainNs;
    } else if (flow == nullptr) {
      ledger_->apply(move.number, MoveEvent::kSupersede, "the flow ended");
    } else if (move.programmed && flow->wire_port() == move.port) {
      ledger_->apply(move.number, MoveEvent::kVerify, move.verified);
    } else if (age_ns > kLimitNs) {
      ledger_->apply(move.number, MoveEvent::kFail,
                     move.programmed ? "port " + std::to_string(move.port) + " was not seen on the wire within 30 s"
                                     : "the agent did not report it within 30 s");
    } else {
      done = false;
    }
    followed = done ? followed_.erase(followed) : std::next(followed);
  }
}

}  // namespace te
