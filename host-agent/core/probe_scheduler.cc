// SPDX-License-Identifier: Apache-2.0
#include "host-agent/core/probe_scheduler.h"

#include <algorithm>
#include <utility>

namespace te::agent {
namespace {

constexpr std::int64_t kSecond = 1'000'000'000;
// A timer that fires late may catch up, but never by more packets than fit in this time.
constexpr std::int64_t kCatchUpNs = 10'000'000;
// Outcomes wait for each other a little, so that a big order is not one message a port.
constexpr std::int64_t kReportDelayNs = 50'000'000;
constexpr std::size_t kReportOutcomes = 512;
constexpr std::uint8_t kMaxTtl = 64;

Result<void> check(const ProbeOrder& order) {
  const FlowKey& flow = order.flow;
  if (!flow.source.is_set() || flow.source.family() != flow.destination.family()) {
    return Error{"source and destination must be two addresses of one family"};
  }
  if (order.ports.empty() || order.ttls.empty()) return Error{"no ports or no TTLs to probe"};
  if (std::any_of(order.ports.begin(), order.ports.end(), [](std::uint16_t port) { return port == 0; })) {
    return Error{"port 0 cannot be probed"};
  }
  if (std::any_of(order.ttls.begin(), order.ttls.end(), [](std::uint8_t ttl) { return ttl == 0 || ttl > kMaxTtl; })) {
    return Error{"TTLs go from 1 to " + std::to_string(kMaxTtl)};
  }
  if (order.probes_per_s == 0 || order.attempts == 0 || order.timeout_ns <= 0) {
    return Error{"pace, attempts and timeout must not be 0"};
  }
  return {};
}

}  // namespace

Result<void> ProbeScheduler::start(ProbeOrder order, std::int64_t now_ns) {
  if (auto sound = check(order); !sound) return sound;
  if (find(order.id) != nullptr) return Error{"order " + std::to_string(order.id) + " is already running"};
  const std::size_t size = order.ports.size() * order.ttls.size();
  if (orders_.size() >= kMaxOrders) return Error{"already " + std::to_string(kMaxOrders) + " orders at work"};
  if (size > kMaxPending - pending_) {
    return Error{"more than " + std::to_string(kMaxPending) + " probes would wait"};
  }
  Order entry;
  for (const std::uint16_t port : order.ports) {
    for (const std::uint8_t ttl : order.ttls) {
      entry.queue.push_back(static_cast<std::uint32_t>(entry.items.size()));
      entry.items.push_back({port, ttl, 0, 0});
    }
  }
  entry.report.id = order.id;
  entry.unresolved = size;
  entry.next_send_ns = now_ns;
  entry.ask = std::move(order);
  pending_ += size;
  orders_.push_back(std::move(entry));
  return {};
}

void ProbeScheduler::cancel(std::uint64_t id) {
  for (std::size_t i = 0; i < orders_.size(); ++i) {
    if (orders_[i].ask.id == id) return forget(i);
  }
}

void ProbeScheduler::cancel_all() {
  while (!orders_.empty()) forget(0);
}

void ProbeScheduler::fail(std::uint64_t id, const std::string& why) {
  Order* order = find(id);
  if (order == nullptr) return;
  order->report.error = why;
  order->unresolved = 0;
}

void ProbeScheduler::fail_all(const std::string& why) {
  for (Order& order : orders_) fail(order.ask.id, why);
}

std::optional<Probe> ProbeScheduler::next(std::int64_t now_ns) {
  for (std::size_t i = 0; i < orders_.size(); ++i) {
    turn_ = (turn_ + 1) % orders_.size();
    Order& order = orders_[turn_];
    while (!order.queue.empty() && order.items[order.queue.front()].resolved != 0) order.queue.pop_front();
    if (order.unresolved == 0 || order.queue.empty() || now_ns < order.next_send_ns) continue;
    const std::uint32_t index = order.queue.front();
    order.queue.pop_front();
    order.next_send_ns = std::max(order.next_send_ns, now_ns - kCatchUpNs) + kSecond / order.ask.probes_per_s;
    Item& item = order.items[index];
    ++item.attempts;
    ++order.report.sent;
    order.flights.push_back({index, item.attempts, now_ns + order.ask.timeout_ns});
    if (++last_token_ == 0) last_token_ = 1;
    tokens_[last_token_] = {order.ask.id, index, now_ns};
    return Probe{order.ask.id, order.ask.flow, order.ask.flow_label, item.port, item.ttl, last_token_};
  }
  return std::nullopt;
}

bool ProbeScheduler::answer(const QuotedPacket& quoted, const IpAddress& responder, std::int64_t now_ns,
                            bool unreachable) {
  if (unreachable && responder == quoted.source) return false;
  // Only the low 16 bits of a PSN are ours; an IPv4 quote may be too short to have one.
  const bool v6 = quoted.source.is_v6();
  if (v6 && (!quoted.psn || *quoted.psn > 0xFFFF)) return false;
  const auto found = tokens_.find(v6 ? static_cast<std::uint16_t>(*quoted.psn) : quoted.ip_id);
  if (found == tokens_.end()) return false;
  const Token token = found->second;
  Order* order = find(token.order_id);
  if (order == nullptr) return false;
  Item& item = order->items[token.item];
  if (item.port != quoted.source_port || order->ask.flow.source != quoted.source ||
      order->ask.flow.destination != quoted.destination) {
    return false;
  }
  tokens_.erase(found);  // a duplicate, or a forged second answer, finds nothing
  if (item.resolved == 0) resolve(*order, item, responder, now_ns - token.sent_ns, now_ns, unreachable);
  return true;
}

void ProbeScheduler::resolve(Order& order, Item& item, const IpAddress& responder, std::int64_t rtt_ns,
                             std::int64_t now_ns, bool unreachable) {
  if (order.unresolved == 0) return;
  item.resolved = 1;
  --order.unresolved;
  order.report_since_ns = std::min(order.report_since_ns, now_ns);
  order.report.outcomes.push_back({item.port, item.ttl, responder, item.attempts,
                                   static_cast<std::uint32_t>(std::clamp<std::int64_t>(
                                       rtt_ns / 1000, 0, std::numeric_limits<std::uint32_t>::max())),
                                   unreachable});
}

void ProbeScheduler::expire(Order& order, std::int64_t now_ns) {
  while (!order.flights.empty() && order.flights.front().deadline_ns <= now_ns) {
    const Flight flight = order.flights.front();
    order.flights.pop_front();
    Item& item = order.items[flight.item];
    if (item.resolved != 0) continue;
    ++order.report.lost;
    if (flight.attempt < order.ask.attempts) {
      order.queue.push_back(flight.item);
    } else {
      resolve(order, item, IpAddress(), 0, now_ns);
    }
  }
}

std::vector<ProbeReport> ProbeScheduler::take_reports(std::int64_t now_ns) {
  std::vector<ProbeReport> reports;
  for (std::size_t i = 0; i < orders_.size();) {
    Order& order = orders_[i];
    expire(order, now_ns);
    const bool done = order.unresolved == 0;
    const std::size_t waiting = order.report.outcomes.size();
    const bool due = waiting >= kReportOutcomes || (waiting > 0 && now_ns - order.report_since_ns >= kReportDelayNs);
    if (done || due) {
      order.report.done = done;
      reports.push_back(std::exchange(order.report, ProbeReport{order.ask.id, {}, 0, 0, false, {}}));
      order.report_since_ns = kNever;
    }
    if (done) {
      forget(i);
    } else {
      ++i;
    }
  }
  return reports;
}

std::int64_t ProbeScheduler::wake_of(const Order& order) {
  if (order.unresolved == 0) return 0;
  std::int64_t wake_ns = kNever;
  if (!order.queue.empty()) wake_ns = order.next_send_ns;
  if (!order.flights.empty()) wake_ns = std::min(wake_ns, order.flights.front().deadline_ns);
  if (order.report_since_ns != kNever) wake_ns = std::min(wake_ns, order.report_since_ns + kReportDelayNs);
  return wake_ns;
}

std::int64_t ProbeScheduler::wake_at() const {
  std::int64_t wake_ns = kNever;
  for (const Order& order : orders_) wake_ns = std::min(wake_ns, wake_of(order));
  return wake_ns;
}

ProbeScheduler::Order* ProbeScheduler::find(std::uint64_t id) {
  const auto found =
      std::find_if(orders_.begin(), orders_.end(), [&](const Order& order) { return order.ask.id == id; });
  return found == orders_.end() ? nullptr : &*found;
}

void ProbeScheduler::forget(std::size_t index) {
  pending_ -= orders_[index].items.size();
  orders_.erase(orders_.begin() + static_cast<std::ptrdiff_t>(index));
  if (orders_.empty()) tokens_.clear();
}

}  // namespace te::agent
