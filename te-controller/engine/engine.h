// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <map>
#include <memory>
#include <optional>
#include <set>
#include <string>
#include <utility>
#include <vector>

#include "common/base/result.h"
#include "te-controller/engine/attendance.h"
#include "te-controller/engine/fleet.h"
#include "te-controller/engine/ledger.h"
#include "te-controller/engine/link_watch.h"
#include "te-controller/engine/mode.h"
#include "te-controller/engine/mover.h"
#include "te-controller/engine/options.h"
#include "te-controller/engine/overrides.h"
#include "te-controller/engine/persistent_state.h"
#include "te-controller/engine/plan_job.h"
#include "te-controller/engine/prober.h"
#include "te-controller/engine/steering.h"
#include "te-controller/engine/switch_trial.h"

namespace te {

/// All decisions of the controller, without I/O: messages of agents and the time go in, messages to agents, planning
/// jobs and what is to be stored come out. One thread; only a PlanJob may be read by another.
class Engine {
 public:
  /// Moves wait until the paths of all data flows are known, this long at most.
  static constexpr std::int64_t kExploreLimitNs = 2'000'000'000;
  /// After a link changed.
  static constexpr std::int64_t kSettleNs = 5'000'000'000;
  /// Steering of a flow that is not seen any more is kept this long: jobs pause.
  static constexpr std::int64_t kKeepSteeringNs = 600'000'000'000;

  /// `wall_us`, `now_ns`: the same moment by both clocks.
  Engine(Fabric fabric, const EngineOptions& options, std::int64_t now_ns, std::int64_t wall_us);
  Engine(const Engine&) = delete;  // the parts point at each other
  Engine& operator=(const Engine&) = delete;

  /// Before any agent connects.
  void restore(const PersistentState& state, std::int64_t now_ns);

  v1::HelloReply on_hello(const std::string& node, const v1::Hello& hello, std::int64_t now_ns);
  /// An Error: malformed; the session should end.
  Result<void> on_message(const std::string& node, const v1::AgentMessage& message, std::int64_t now_ns);
  /// A FlowUpdate: the most frequent message, read in a faster way. An Error: the session should end.
  Result<void> on_flows(const std::string& node, const FlowNews& news, std::int64_t now_ns);
  void on_gone(const std::string& node, std::int64_t now_ns);
  /// Call every few tens of milliseconds.
  void tick(std::int64_t now_ns, std::int64_t wall_us);

  /// A planning cycle's work when one is due, else null. Then finish_cycle() is owed.
  std::shared_ptr<const PlanJob> begin_cycle(std::int64_t now_ns);
  void finish_cycle(PlanOutcome outcome, std::int64_t now_ns);

  /// Errors: it does not fit the mode.
  Result<void> set_acting(bool on, std::int64_t now_ns);
  void pause(std::int64_t now_ns);
  Result<void> resume(std::int64_t now_ns);

  /// `order`: target, who, reason; `until_s` as a duration from now, 0: until it is taken back. Returns what the older
  /// one said whose place it takes, empty: there was none. Errors: no such target; hosts would have no way left that
  /// takes flows, unless `force`.
  Result<std::string> drain(v1::OverrideView order, bool force, std::int64_t now_ns);
  /// The same of a flow, whose id may be given by a unique beginning: it is moved only off a way that takes no flows.
  Result<std::string> pin(v1::OverrideView order, std::int64_t now_ns);
  /// Ends a drain or a pin. An Error: there is none.
  Result<void> take_back(const std::string& kind, const std::string& target, const std::string& who,
                         std::int64_t now_ns);

  std::vector<Outgoing> take_outgoing(std::int64_t now_ns);
  PersistentChange take_changes();

  [[nodiscard]] Mode mode() const { return mode_; }
  [[nodiscard]] const EngineOptions& options() const { return options_; }
  [[nodiscard]] const Fabric& fabric() const { return *fabric_; }
  [[nodiscard]] const Fleet& fleet() const { return fleet_; }
  [[nodiscard]] const Prober& prober() const { return prober_; }
  [[nodiscard]] const LinkWatch& link_watch() const { return link_watch_; }
  [[nodiscard]] const SwitchTrials& trials() const { return trials_; }
  [[nodiscard]] const Steering& steering() const { return steering_; }
  [[nodiscard]] const Ledger& ledger() const { return ledger_; }
  [[nodiscard]] const Overrides& overrides() const { return overrides_; }
  [[nodiscard]] const Mover& mover() const { return mover_; }
  [[nodiscard]] const PlanBuilder& plan_builder() const { return builder_; }
  [[nodiscard]] Routing& routing() { return routing_; }
  [[nodiscard]] EcmpKnowledge& knowledge() { return knowledge_; }
  /// The last cycle; null job before the first.
  [[nodiscard]] const PlanOutcome& last_plan() const { return last_plan_; }
  [[nodiscard]] int plan_cycles() const { return plan_cycles_; }
  [[nodiscard]] std::int64_t started_ns() const { return started_ns_; }
  [[nodiscard]] const std::map<std::string, std::uint64_t>& events() const { return events_; }
  /// Links whose condition changed since the last call, for the log: what happened, and why.
  struct News {
    std::string text;
    bool is_warning = true;
  };
  std::vector<News> take_link_news() { return std::exchange(link_news_, {}); }
  /// By the wall clock, seconds since 1970.
  [[nodiscard]] double wall_s(std::int64_t now_ns) const;
  /// False while paths of data flows are still being explored.
  [[nodiscard]] bool paths_explored(std::int64_t now_ns) const;
  /// Why nothing but what must leave its way is moved now; empty: moves are not held.
  [[nodiscard]] std::string hold(std::int64_t now_ns) const;
  /// Why the next decisions could not be stored now, or earlier ones are not yet; empty: they are, and can.
  void set_store_problem(const std::string& problem);
  /// The ledger entry of a planned move, as it stands in `outcome`.
  [[nodiscard]] v1::MoveView record_of(const PlanOutcome& outcome, const traffic::PlannedMove& move) const;
  [[nodiscard]] bool steered(const Flow& flow) const;

 private:
  void set_mode(Mode mode);
  void take_change(const Fleet::Change& change);
  void renew_targets(std::int64_t now_ns);
  void forget(std::int64_t now_ns);
  void watch_links(std::int64_t now_ns);
  void note_answers(const v1::ProbeResult& result);
  void try_switches(std::int64_t now_ns);
  std::string override_with(v1::OverrideView order, std::int64_t now_ns);
  void overrides_changed(std::int64_t now_ns);
  void expire_overrides(std::int64_t now_ns);
  [[nodiscard]] std::set<LinkId> drained_links() const;
  [[nodiscard]] std::string pinned_flow(const std::string& beginning) const;
  void carry_out(bool forced_only, std::int64_t now_ns);
  [[nodiscard]] std::string why_left(const std::vector<LinkId>& way, const std::string& otherwise) const;
  [[nodiscard]] MoveOrder order_for(const traffic::PlannedMove& move, std::int64_t now_ns) const;

  EngineOptions options_;
  std::unique_ptr<Fabric> fabric_;
  std::shared_ptr<const Fabric> snapshot_;  ///< of it, for planning; null: to be taken anew
  Routing routing_;
  EcmpKnowledge knowledge_;
  Fleet fleet_;
  Attendance attendance_;
  Prober prober_;
  LinkWatch link_watch_;
  SwitchTrials trials_;
  Steering steering_;
  Ledger ledger_;
  Overrides overrides_;
  Mover mover_;
  PlanBuilder builder_;

  Mode mode_;
  Mode resume_mode_ = Mode::kObserve;
  bool mode_changed_ = false;
  std::int64_t started_ns_;
  std::int64_t wall_minus_now_us_;
  bool targets_stale_ = true;
  std::int64_t targets_ns_ = 0;
  std::int64_t forget_ns_ = 0;
  bool plan_stale_ = true;
  bool planning_ = false;
  std::int64_t planned_ns_ = 0;
  std::int64_t links_changed_ns_ = 0;  ///< last; 0: never
  int plan_cycles_ = 0;
  PlanOutcome last_plan_;
  std::map<std::pair<std::string, SteeringKey>, std::int64_t> steering_used_ns_;
  std::map<std::string, std::uint64_t> events_;  ///< from agents, by kind
  std::vector<News> link_news_;
  std::set<std::string> connected_;  ///< nodes that have a session
  std::set<NodeId> distrusted_;      ///< switches that did not choose by the port when last seen
  std::set<NodeId> silent_;          ///< switches that answered no probe when last seen
  std::string store_problem_;
  bool held_by_store_ = false;  ///< a plan was not carried out for it
};

}  // namespace te
