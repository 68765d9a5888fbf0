// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <deque>
#include <limits>
#include <optional>
#include <string>
#include <unordered_map>
#include <vector>

#include "common/base/result.h"
#include "host-agent/core/flow_sample.h"
#include "host-agent/core/icmp_quote.h"

namespace te::agent {

/// What the controller asks for: each port at each TTL (hop limit). `attempts` and `probes_per_s` at least 1.
struct ProbeOrder {
  std::uint64_t id = 0;
  FlowKey flow;
  std::uint32_t flow_label = 0;
  std::vector<std::uint16_t> ports;
  std::vector<std::uint8_t> ttls;
  std::uint32_t probes_per_s = 100;
  std::uint32_t attempts = 1;
  std::int64_t timeout_ns = 200'000'000;
};

/// One packet to send. `token` tells it from all others for a while: 1..65535.
struct Probe {
  std::uint64_t order_id = 0;
  FlowKey flow;
  std::uint32_t flow_label = 0;
  std::uint16_t port = 0;
  std::uint8_t ttl = 0;
  std::uint16_t token = 0;
};

/// What came of one (port, TTL); `responder` unset: nobody answered.
struct ProbeOutcome {
  std::uint16_t port = 0;
  std::uint8_t ttl = 0;
  IpAddress responder;
  std::uint32_t attempts = 0;
  std::uint32_t rtt_us = 0;
  bool unreachable = false;  ///< the responder has no way on
};

/// A part of an order's result; the last part has `done`.
struct ProbeReport {
  std::uint64_t id = 0;
  std::vector<ProbeOutcome> outcomes;
  std::uint32_t sent = 0;
  std::uint32_t lost = 0;
  bool done = false;
  std::string error;
};

/// Paces probes, matches answers, retries what timed out. Time is given in monotonic nanoseconds.
class ProbeScheduler {
 public:
  static constexpr std::size_t kMaxOrders = 64;
  static constexpr std::size_t kMaxPending = 131072;  ///< (port, TTL) pairs over all orders
  static constexpr std::int64_t kNever = std::numeric_limits<std::int64_t>::max();

  /// Takes an order; an Error when it makes no sense or the limits above would be broken.
  Result<void> start(ProbeOrder order, std::int64_t now_ns);
  void cancel(std::uint64_t id);
  void cancel_all();
  /// The probe that is due now, none when all wait for their pace, an answer or a timeout. It counts as sent.
  std::optional<Probe> next(std::int64_t now_ns);
  /// The order cannot go on (its packets cannot be sent).
  void fail(std::uint64_t id, const std::string& why);
  void fail_all(const std::string& why);
  /// Takes an answer; false when it belongs to no probe of ours. A late answer still counts as one. That there is no
  /// way on counts only when another node than the sender says so: the sender's own kernel says it of a neighbour that
  /// is silent.
  bool answer(const QuotedPacket& quoted, const IpAddress& responder, std::int64_t now_ns, bool unreachable = false);
  /// Looks for timeouts, then hands over what is to be reported now.
  std::vector<ProbeReport> take_reports(std::int64_t now_ns);
  /// When next() or take_reports() will have something; kNever when idle.
  [[nodiscard]] std::int64_t wake_at() const;
  [[nodiscard]] bool idle() const { return orders_.empty(); }

 private:
  struct Item {
    std::uint16_t port = 0;
    std::uint8_t ttl = 0;
    std::uint8_t resolved = 0;
    std::uint32_t attempts = 0;
  };
  struct Flight {
    std::uint32_t item = 0;
    std::uint32_t attempt = 0;
    std::int64_t deadline_ns = 0;
  };
  struct Order {
    ProbeOrder ask;
    std::vector<Item> items;
    std::deque<std::uint32_t> queue;  // items to send
    std::deque<Flight> flights;       // in order of their deadline
    std::size_t unresolved = 0;
    std::int64_t next_send_ns = 0;
    std::int64_t report_since_ns = kNever;  // since when outcomes wait to be reported
    ProbeReport report;
  };
  struct Token {
    std::uint64_t order_id = 0;
    std::uint32_t item = 0;
    std::int64_t sent_ns = 0;
  };

  Order* find(std::uint64_t id);
  static void resolve(Order& order, Item& item, const IpAddress& responder, std::int64_t rtt_ns, std::int64_t now_ns,
                      bool unreachable = false);
  static void expire(Order& order, std::int64_t now_ns);
  static std::int64_t wake_of(const Order& order);
  void forget(std::size_t index);

  std::deque<Order> orders_;  // few; next() serves them in turn
  std::size_t turn_ = 0;
  std::size_t pending_ = 0;
  std::unordered_map<std::uint16_t, Token> tokens_;
  std::uint16_t last_token_ = 0;
};

}  // namespace te::agent
