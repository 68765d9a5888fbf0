// SPDX-License-Identifier: Apache-2.0
#include "host-agent/core/steering_reconciler.h"

#include <algorithm>
#include <limits>
#include <utility>

#include "common/roce/source_port.h"

namespace te::agent {

bool SteeringReconciler::want(std::uint64_t revision, std::span<const Steering> entries) {
  if (session_revision_ && revision < *session_revision_) return false;
  session_revision_ = revision;
  revision_ = revision;
  has_wish_ = true;
  wanted_.clear();
  refused_.clear();
  for (const Steering& entry : entries) {
    if (entry.port < roce::kMinSourcePort) {
      refused_.push_back({entry, "port " + std::to_string(entry.port) + " is not in 49152..65535"});
    } else if (!entry.key.source.is_set() || entry.key.source.family() != entry.key.destination.family()) {
      refused_.push_back({entry, "source and destination must be two addresses of one family"});
    } else if (wanted_.size() >= limits_.entries) {
      refused_.push_back({entry, "more than " + std::to_string(limits_.entries) + " entries"});
    } else if (!wanted_.emplace(entry.key, entry.port).second) {
      refused_.push_back({entry, "the flow is listed twice"});
    }
  }
  std::erase_if(seen_, [&](const auto& flow) { return !wanted_.contains(flow.first); });
  std::erase_if(released_, [&](const auto& entry) {
    const auto wanted = wanted_.find(entry.first);
    return wanted == wanted_.end() || wanted->second != entry.second.port;
  });
  drop_settled_failures();
  ++generation_;
  return true;
}

void SteeringReconciler::observe(std::span<const FlowSample> samples) {
  ++reading_;
  std::map<FlowKey, std::uint16_t> held;
  std::map<FlowKey, std::uint64_t> packets_of_released;
  for (const FlowSample& sample : samples) {
    if (released_.contains(sample.key)) packets_of_released.emplace(sample.key, sample.counters.packets);
    if (sample.steer_port != 0) held.emplace(sample.key, sample.steer_port);
    if (!wanted_.contains(sample.key)) continue;
    std::uint64_t& last = seen_[sample.key];
    if (last + 1 < reading_) failures_.erase(sample.key);  // it has just appeared: what failed without it may work now
    last = reading_;
  }
  std::erase_if(seen_, [&](const auto& flow) { return flow.second != reading_; });
  end_releases(packets_of_released);
  if (held == programmed_) return;
  programmed_ = std::move(held);
  drop_settled_failures();
  ++generation_;
}

void SteeringReconciler::end_releases(const std::map<FlowKey, std::uint64_t>& packets) {
  for (auto it = released_.begin(); it != released_.end();) {
    Released& released = it->second;
    const auto now = packets.find(it->first);
    const std::uint64_t count = now == packets.end() ? 0 : now->second;
    const bool sends = released.packets && count > *released.packets;
    released.packets = count;
    if (sends && released.why.until_it_sends) {
      it = released_.erase(it);
      ++generation_;
    } else {
      ++it;
    }
  }
}

bool SteeringReconciler::release(const FlowKey& key, Release why) {
  const std::uint16_t port = programmed_port(key);
  if (port == 0 || released_.contains(key)) return false;
  released_.insert_or_assign(key, Released{std::move(why), port, std::nullopt});
  ++generation_;
  return true;
}

std::vector<Steering> SteeringReconciler::due(std::int64_t now_ns) const {
  std::vector<Steering> actions;
  const auto ready = [&](const Steering& action) {
    const auto failed = failures_.find(action.key);
    return failed == failures_.end() || failed->second.action != action || failed->second.retry_ns <= now_ns;
  };
  const auto add = [&](const FlowKey& key, std::uint16_t port) {
    if (const Steering action{key, port}; ready(action)) actions.push_back(action);
  };
  for (const auto& [key, port] : programmed_) {
    if (released_.contains(key) || (has_wish_ && wanted_port(key) == 0)) add(key, 0);
  }
  for (const auto& [key, port] : wanted_) {
    if (programmed_port(key) != port && !released_.contains(key)) add(key, port);
  }
  return actions;
}

void SteeringReconciler::done(const Steering& action, const Result<void>& outcome, std::int64_t now_ns) {
  ++generation_;
  if (outcome) {
    failures_.erase(action.key);
    if (action.port == 0) {
      programmed_.erase(action.key);
    } else {
      programmed_[action.key] = action.port;
    }
    return;
  }
  auto found = failures_.find(action.key);
  if (found == failures_.end() || found->second.action != action) {
    Failure fresh{action, {}, 0, Backoff(limits_.retry_first_ns, limits_.retry_most_ns)};
    found = failures_.insert_or_assign(action.key, std::move(fresh)).first;
  }
  Failure& failure = found->second;
  failure.reason = outcome.error().message;
  failure.retry_ns = now_ns + failure.backoff.failed(0);
}

std::vector<Steering> SteeringReconciler::programmed() const {
  std::vector<Steering> all;
  all.reserve(programmed_.size());
  for (const auto& [key, port] : programmed_) all.push_back({key, port});
  return all;
}

std::vector<SteeringProblem> SteeringReconciler::problems() const {
  std::vector<SteeringProblem> all = refused_;
  all.reserve(refused_.size() + failures_.size() + released_.size());
  for (const auto& [key, failure] : failures_) all.push_back({failure.action, failure.reason});
  for (const auto& [key, released] : released_) {
    if (wanted_.contains(key)) all.push_back({{key, released.port}, released.why.reason});
  }
  return all;
}

std::int64_t SteeringReconciler::retry_at() const {
  std::int64_t at_ns = std::numeric_limits<std::int64_t>::max();
  for (const auto& [key, failure] : failures_) at_ns = std::min(at_ns, failure.retry_ns);
  return at_ns;
}

void SteeringReconciler::drop_settled_failures() {
  std::erase_if(failures_, [&](const auto& entry) {
    const Steering& action = entry.second.action;
    return action.port != wanted_port(action.key) || action.port == programmed_port(action.key);
  });
}

std::uint16_t SteeringReconciler::wanted_port(const FlowKey& key) const {
  if (released_.contains(key)) return 0;
  const auto found = wanted_.find(key);
  return found == wanted_.end() ? std::uint16_t{0} : found->second;
}

std::uint16_t SteeringReconciler::programmed_port(const FlowKey& key) const {
  const auto found = programmed_.find(key);
  return found == programmed_.end() ? std::uint16_t{0} : found->second;
}

}  // namespace te::agent
