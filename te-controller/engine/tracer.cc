// SPDX-License-Identifier: Apache-2.0
#include "te-controller/engine/tracer.h"

#include <algorithm>
#include <utility>

#include "common/base/units.h"

namespace te {
namespace {

constexpr std::uint32_t kAttempts = 2;
constexpr std::uint32_t kProbesPerS = 1000;  // a handful of packets, at once

}  // namespace

bool Tracer::start(TraceOrder order, std::int64_t now_ns) {
  if (order.ttls.empty() || requests_.size() >= kMostInFlight) return false;
  Outgoing message{.node = order.node, .message = {}};
  v1::ProbeRequest& ask = *message.message.mutable_probe_request();
  ask.set_id(next_id_);
  *ask.mutable_flow() = order.flow;
  ask.set_flow_label(order.flow_label);
  ask.add_ports(order.port);
  for (const std::uint32_t ttl : order.ttls) ask.add_ttls(ttl);
  ask.set_probes_per_s(kProbesPerS);
  ask.set_attempts(kAttempts);
  ask.set_timeout_ms(options_.timeout_ms);
  outgoing_.push_back(std::move(message));
  std::vector<SwitchCost> costs;
  for (const std::uint32_t ttl : order.ttls) {
    if (ttl <= order.way.size()) costs.push_back({.node = fabric_->link(order.way[ttl - 1]).to, .answers = 1});
  }
  budget_->charge(costs, now_ns);
  Request request;
  request.order = std::move(order);
  request.deadline_ns = now_ns + kAnswerSlackNs + std::int64_t{kAttempts} * options_.timeout_ms * kNsPerMs;
  requests_.emplace(next_id_++, std::move(request));
  return true;
}

std::vector<Outgoing> Tracer::take_outgoing() { return std::exchange(outgoing_, {}); }

Result<std::optional<TraceOutcome>> Tracer::take_result(const std::string& node, const v1::ProbeResult& result) {
  const auto found = requests_.find(result.id());
  if (found == requests_.end() || found->second.order.node != node) return std::optional<TraceOutcome>();
  Request& request = found->second;
  for (const v1::ProbeAnswer& answer : result.answers()) {
    request.attempts[answer.ttl()] = answer.attempts();
    if (answer.responder().empty()) continue;
    auto address = IpAddress::from_bytes(
        {reinterpret_cast<const std::uint8_t*>(answer.responder().data()), answer.responder().size()});
    if (!address) return with_context(address.error(), "responder of a probe answer");
    request.responders.insert_or_assign(answer.ttl(), *address);
    if (answer.unreachable()) request.unreachable.insert(answer.ttl());
  }
  if (!result.done() && result.error().empty()) return std::optional<TraceOutcome>();
  std::optional<TraceOutcome> outcome;
  if (result.error().empty()) outcome = read(request);
  requests_.erase(found);
  return outcome;
}

LinkId Tracer::link_of(const TraceOrder& order, std::uint32_t ttl, const IpAddress& responder) const {
  const auto port = fabric_->find_address(responder);
  if (!port || ttl == 0 || ttl > order.way.size()) return kNoId;
  const LinkId expected = order.way[ttl - 1];
  // A switch answers for its own address with whichever of its addresses it likes.
  if (order.beyond != kNoId) return fabric_->port(*port).node == fabric_->link(expected).to ? expected : kNoId;
  return fabric_->port(*port).in == expected ? expected : kNoId;
}

TraceOutcome Tracer::read(const Request& request) {
  const TraceOrder& order = request.order;
  TraceOutcome outcome;
  outcome.order = order;
  for (const std::uint32_t ttl : order.ttls) {
    const auto answer = request.responders.find(ttl);
    if (answer != request.responders.end()) {
      outcome.silent = kNoId;  // if anything was silent before, then a switch that does not answer, not a link
      const LinkId link = link_of(order, ttl, answer->second);
      if (link == kNoId) return outcome;  // it goes another way now
      outcome.proved.push_back(link);
      heard(fabric_->link(link).to);
      if (!request.unreachable.contains(ttl)) continue;
      if (ttl < order.way.size()) {
        outcome.silent = order.way[ttl];
        outcome.probes = kAttempts;
      }
      return outcome;
    }
    if (ttl > order.way.size() || outcome.silent != kNoId) continue;
    const LinkId link = order.way[ttl - 1];
    if (!talkative_.contains(fabric_->link(link).to)) continue;
    outcome.silent = link;
    const auto attempts = request.attempts.find(ttl);
    outcome.probes = attempts == request.attempts.end() ? 1 : std::max(1U, attempts->second);
  }
  return outcome;
}

void Tracer::disconnected(const std::string& node) {
  std::erase_if(requests_, [&](const auto& entry) { return entry.second.order.node == node; });
  std::erase_if(outgoing_, [&](const Outgoing& message) { return message.node == node; });
}

void Tracer::expire(std::int64_t now_ns) {
  std::erase_if(requests_, [&](const auto& entry) { return now_ns >= entry.second.deadline_ns; });
}

}  // namespace te
