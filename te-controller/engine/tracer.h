// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <map>
#include <optional>
#include <set>
#include <string>
#include <vector>

#include "common/base/result.h"
#include "te-controller/engine/fleet.h"
#include "te-controller/engine/flow.h"
#include "te-controller/engine/options.h"
#include "te-controller/engine/outgoing.h"
#include "te-controller/engine/switch_budget.h"

namespace te {

/// Probes with a flow's own addresses and port to every switch on its way (or some of them), to see how far they get.
struct TraceOrder {
  std::string node;  ///< whose agent sends them
  v1::FlowKey flow;
  std::uint32_t flow_label = 0;
  std::uint16_t port = 0;
  std::vector<LinkId> way;          ///< as far as it is known, from the source NIC port on
  std::vector<std::uint32_t> ttls;  ///< ascending; TTL n is answered by the switch behind way[n - 1]
  LinkId beyond = kNoId;            ///< set: the probe is addressed to the port behind `way`, to see if that is there
};

/// What a trace showed.
struct TraceOutcome {
  std::vector<LinkId> proved;  ///< links that a probe came through
  LinkId silent = kNoId;       ///< probes came as far as the switch in front of it, and none got behind it
  std::uint32_t probes = 0;    ///< that were sent over the silent link
  TraceOrder order;
};

/// Sends traces and reads their outcomes. A switch that says it has no way on tells as much as silence behind it.
/// Switches that never answered a probe cannot be missed. Traces are few (they follow trouble), so they are charged to
/// the switches' budget but do not wait for it. Pure.
class Tracer {
 public:
  static constexpr std::uint64_t kFirstId = std::uint64_t{1} << 62;  ///< request ids of the prober are below
  static constexpr std::size_t kMostInFlight = 32;

  /// `fabric` and `budget` outlive it.
  Tracer(const Fabric& fabric, SwitchBudget& budget, const ProbingOptions& options)
      : fabric_(&fabric), budget_(&budget), options_(options) {}

  /// False when too many are in flight.
  bool start(TraceOrder order, std::int64_t now_ns);
  std::vector<Outgoing> take_outgoing();
  [[nodiscard]] static bool is_ours(const v1::ProbeResult& result) { return result.id() >= kFirstId; }
  /// Absent: not done yet, or not asked for. An Error: malformed.
  Result<std::optional<TraceOutcome>> take_result(const std::string& node, const v1::ProbeResult& result);
  void disconnected(const std::string& node);
  void expire(std::int64_t now_ns);
  /// The switch answers probes.
  void heard(NodeId node) { talkative_.insert(node); }
  [[nodiscard]] bool answers(NodeId node) const { return talkative_.contains(node); }

 private:
  struct Request {
    TraceOrder order;
    std::map<std::uint32_t, IpAddress> responders;  ///< by TTL
    std::set<std::uint32_t> unreachable;            ///< TTLs whose responder has no way on
    std::map<std::uint32_t, std::uint32_t> attempts;
    std::int64_t deadline_ns = 0;
  };

  [[nodiscard]] TraceOutcome read(const Request& request);
  /// The link behind which `responder` sits, if it is `hop` links from the source.
  [[nodiscard]] LinkId link_of(const TraceOrder& order, std::uint32_t ttl, const IpAddress& responder) const;

  const Fabric* fabric_;
  SwitchBudget* budget_;
  ProbingOptions options_;
  std::map<std::uint64_t, Request> requests_;
  std::set<NodeId> talkative_;
  std::vector<Outgoing> outgoing_;
  std::uint64_t next_id_ = kFirstId;
};

}  // namespace te
