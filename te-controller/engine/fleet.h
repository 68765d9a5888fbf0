// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "common/base/result.h"
#include "te-controller/engine/flow.h"
#include "te-controller/engine/flow_news.h"
#include "te-controller/engine/flow_table.h"
#include "te-controller/engine/owned_ends.h"
#include "topology/fabric.h"

namespace te {

/// A host of the fabric, or a switch with an agent of its own.
struct FleetNode {
  bool connected = false;
  v1::Hello hello;               ///< of the last session; its sources as they are now
  std::int64_t changed_ns = 0;   ///< when it connected or disconnected
  std::int64_t reported_ns = 0;  ///< last FlowUpdate; 0: none in this session
  std::uint64_t kernel_events_lost = 0;
  std::uint64_t kernel_flows_lost = 0;
  std::map<std::pair<std::string, std::string>, v1::LinkReport> links;  ///< by network namespace and interface
  OwnedEnds flows;                                                      ///< ends that it reports and owns

  /// State of a source ("tc", "probe"); STATE_UNSPECIFIED when the agent does not name it.
  [[nodiscard]] v1::Source::State source(std::string_view name) const;
};

/// All that agents reported: hosts and flows, both ends of a flow joined. Pure: times are arguments.
class Fleet {
 public:
  static constexpr std::size_t kMaxFlowsPerNode = 65536;
  static constexpr std::size_t kMaxLinksPerNode = 4096;
  static constexpr std::size_t kHistory = RateHistory::kMost;      ///< rate samples kept of each end
  static constexpr std::int64_t kKeepLostNodeNs = 30'000'000'000;  ///< then its flows are forgotten

  /// `fabric` outlives it.
  explicit Fleet(const Fabric& fabric);

  /// An Error: why the agent is to be refused.
  [[nodiscard]] Result<void> may_connect(const std::string& node, const v1::Hello& hello) const;
  /// As may_connect(); a refused Hello changes nothing.
  Result<void> connect(const std::string& node, const v1::Hello& hello, std::int64_t now_ns);
  void disconnect(const std::string& node, std::int64_t now_ns);
  /// All sources of a node as they are now. An Error: the node has no session.
  Result<void> take_sources(const std::string& node, const v1::SourceUpdate& update);

  /// Ports of a node. An Error: the node has no session, or too many ports.
  Result<void> take_links(const std::string& node, const v1::LinkUpdate& update);

  /// What an update changed.
  struct Change {
    bool flows = false;  ///< a flow came, went, or began or stopped to carry data
    bool ports = false;  ///< a port on the wire changed
    std::vector<FlowId> ended;
  };
  /// Takes a report. An end of a flow belongs to the node that reported it first, for as long as that is connected. The
  /// rates of a flow that an update does not name still hold; one that a complete update does not name has ended. An
  /// Error: the node has no session.
  Result<Change> apply(const std::string& node, const FlowNews& news, std::int64_t now_ns);
  /// The same. An Error: the message is malformed, nothing was taken.
  Result<Change> apply(const std::string& node, const v1::FlowUpdate& update, std::int64_t now_ns);
  /// Forgets flows of nodes that have been away for kKeepLostNodeNs.
  Change expire(std::int64_t now_ns);

  [[nodiscard]] const std::map<std::string, FleetNode>& nodes() const { return nodes_; }
  [[nodiscard]] const FlowTable& flows() const { return flows_; }
  /// Null when unknown.
  /// The flow whose id begins so. Errors: none, or more than one.
  [[nodiscard]] Result<const Flow*> find_by_beginning(const std::string& id) const;
  [[nodiscard]] const Flow* find(const FlowId& id) const;
  /// Null when it is no host of the fabric.
  [[nodiscard]] const FleetNode* node(const std::string& name) const;
  /// The connected node that sends the flow; null when there is none.
  [[nodiscard]] const FleetNode* sender(const Flow& flow) const;
  /// The end that measures goodput best of those whose agents are connected; null when there is none.
  [[nodiscard]] const FlowEnd* heard_end(const Flow& flow) const;
  /// Reports of flows whose source or destination is another node's, or whose end another node reports: an agent speaks
  /// only for its own.
  [[nodiscard]] std::uint64_t foreign_reports() const { return foreign_reports_; }
  /// Flows not taken because a node reported more than kMaxFlowsPerNode.
  [[nodiscard]] std::uint64_t flows_dropped() const { return flows_dropped_; }

 private:
  [[nodiscard]] bool speaks_for(const std::string& node, const FlowEndId& end) const;
  /// True when it is the first of the update about that end.
  bool take(const std::string& node, FleetNode& state, const ReportedFlow& reported, const RateSample& sample,
            Change& change);
  /// The flow of an end that the node has not reported yet, with the end made its own; null when it may not.
  Flow* claim(const std::string& node, FleetNode& state, const FlowEndId& end, std::int64_t now_ns);
  void note_silent(const std::string& node, FleetNode& state, bool complete, const RateSample& sample, Change& change);
  void end_flow(const std::string& node, FleetNode& state, const FlowEndId& end, Change& change);

  const Fabric* fabric_;
  std::map<std::string, FleetNode> nodes_;
  FlowTable flows_;
  std::uint64_t updates_ = 0;
  std::uint64_t foreign_reports_ = 0;
  std::uint64_t flows_dropped_ = 0;
};

}  // namespace te
