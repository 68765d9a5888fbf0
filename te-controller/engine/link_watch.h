// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <map>
#include <optional>
#include <set>
#include <string>
#include <vector>

#include "te-controller/diagnosis/link_health.h"
#include "te-controller/diagnosis/loss.h"
#include "te-controller/engine/fleet.h"
#include "te-controller/engine/prober.h"
#include "te-controller/engine/switch_trial.h"
#include "te-controller/engine/tracer.h"
#include "topology/ecmp_knowledge.h"
#include "topology/fabric.h"

namespace te {

/// Watches the links of the fabric through whatever speaks of them: ports of switches and hosts that have agents, flows
/// that are sent and not received, losses, and traces of such flows; and keeps the fabric's link states accordingly.
/// Pure.
class LinkWatch {
 public:
  struct Parts {
    Fabric* fabric;
    const Fleet* fleet;
    EcmpKnowledge* knowledge;
    Prober* prober;
    const SwitchTrials* trials;
  };
  /// A link that changed its condition.
  struct Change {
    LinkId link = kNoId;
    diagnosis::LinkCondition before = diagnosis::LinkCondition::kUnknown;
    diagnosis::LinkStatus now;
    bool paths = false;  ///< flows may use it, or may not any more
  };

  LinkWatch(const Parts& parts, const ProbingOptions& options, std::int64_t report_interval_ns);

  /// True when a port has another carrier than before: judge() at once.
  bool take_links(const std::string& node, const v1::LinkUpdate& update);
  void gone(const std::string& node, std::int64_t now_ns);
  [[nodiscard]] static bool is_ours(const v1::ProbeResult& result) { return Tracer::is_ours(result); }
  /// The switch answered a probe: from now on it can be missed.
  void heard(NodeId node) { tracer_.heard(node); }
  /// A switch was found to send one flow several ways: what overtakes on them looked like losses. Those that are real
  /// show again within seconds.
  void forget_losses();
  /// An Error: malformed.
  Result<void> take_result(const std::string& node, const v1::ProbeResult& result, std::int64_t now_ns);
  /// Looks at flows, follows up, draws conclusions and sets the fabric's link states. Call often; it paces itself.
  std::vector<Change> judge(std::int64_t now_ns);
  /// Links that are to take no flows, however healthy; what is down stays so. In force with the next judge().
  void set_drained(std::set<LinkId> links) { drained_ = std::move(links); }
  std::vector<Outgoing> take_outgoing() { return tracer_.take_outgoing(); }

  /// A host at either end has lost its own link: that explains whatever does not arrive between them.
  [[nodiscard]] bool is_cut_off(const AddressPair& pair) const;
  /// What the flow sends does not arrive, as its two hosts say.
  [[nodiscard]] bool lost(const FlowId& flow) const;
  [[nodiscard]] const diagnosis::LinkStatus& status(LinkId link) const { return health_.status(link); }

 private:
  /// What was last seen of one flow.
  struct Track {
    FlowId flow;
    std::vector<LinkId> way;  ///< as it was then; what is counted starts anew when it changes
    std::uint64_t packets = 0;
    std::uint64_t gaps = 0;
    std::uint64_t reordered = 0;
    std::vector<diagnosis::FlowLoss> seconds;  ///< newest last
    std::int64_t counted_ns = 0;
    bool settling = false;         ///< on a new way: what broke the sequence at the change may still be reported
    std::int64_t arrived_ns = 0;   ///< last packets at the receiver; 0: never
    std::int64_t traced_ns = 0;    ///< last; 0: never
    std::int64_t back_off_ns = 0;  ///< before the next trace
    bool lost = false;             ///< what it sends does not arrive
  };

  [[nodiscard]] LinkState state_of(LinkId link) const;
  [[nodiscard]] bool is_down(LinkId link) const;
  void take(const TraceOutcome& outcome, std::int64_t now_ns);
  bool ask_directly(const TraceOrder& trace, LinkId silent, std::int64_t now_ns);
  void follow_flows();
  void look_at_flows(std::int64_t now_ns);
  void look_at(const Flow& flow, Track& track, std::int64_t now_ns);
  void count(Track& track, const Flow& flow, const ComposedPath& path, std::int64_t now_ns);
  void trace(const Flow& flow, Track& track, const ComposedPath& path, std::int64_t now_ns);
  void look_for_losses(std::int64_t now_ns);
  void ask_for_proof(std::int64_t now_ns);
  void get_acquainted(std::int64_t now_ns);
  [[nodiscard]] std::optional<std::uint16_t> port_towards(const ProbeTarget& target, LinkId link);
  [[nodiscard]] bool does_not_arrive(const Flow& flow, const Track& track, std::int64_t now_ns) const;
  bool start_trace(const Flow& flow, const ComposedPath& path, std::int64_t now_ns);

  Parts parts_;
  std::int64_t interval_ns_;
  diagnosis::LinkHealth health_;
  Tracer tracer_;
  std::vector<Track> tracks_;                  ///< one for each flow of the fleet, in that order
  std::uint64_t tracks_as_of_ = 0;             ///< the fleet's flows
  std::set<LinkId> drained_;                   ///< by operators
  std::set<LinkId> in_force_;                  ///< of them, since the last judge()
  std::map<NodeId, std::int64_t> greeted_ns_;  ///< switches that never answered: when they were last asked
  std::int64_t looked_ns_ = 0;
  std::int64_t losses_ns_ = 0;
  std::int64_t proof_ns_ = 0;
};

}  // namespace te
