// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <map>
#include <memory>
#include <span>
#include <string>
#include <unordered_map>
#include <vector>

#include "te-controller/engine/fleet.h"
#include "te-controller/engine/link_watch.h"
#include "te-controller/engine/mover.h"
#include "te-controller/engine/options.h"
#include "te-controller/engine/overrides.h"
#include "te-controller/engine/switch_trial.h"
#include "te-controller/traffic/planner.h"
#include "topology/ecmp_knowledge.h"
#include "topology/routing.h"

namespace te {

/// A snapshot that a planning cycle works on, in another thread if need be.
struct PlanJob {
  std::shared_ptr<const Fabric> fabric;
  traffic::PlanInput input;
  std::vector<FlowId> flows;  ///< what input.flows stand for
};

/// What a cycle found, together with what it was asked.
struct PlanOutcome {
  std::shared_ptr<const PlanJob> job;
  traffic::Plan plan;
  double computed_ms = 0;
};

/// The equal-cost paths of a pair with the ports known to lead onto each.
struct PairOptions {
  std::vector<Path> paths;
  std::vector<PathPorts> ports;  ///< by path
};

/// Reads the options of a pair off the fabric and what is known; at most Prober::kPathLimit.
[[nodiscard]] PairOptions options_of(Routing& routing, EcmpKnowledge& knowledge, const AddressPair& pair);
/// The port to put a flow onto path `index` by: its present one, else its QP's own, else one of the known ports by the
/// flow's hash; 0: none is known.
[[nodiscard]] std::uint16_t port_for(const PairOptions& options, std::size_t index, const Flow& flow,
                                     std::uint16_t present);
/// How people name a flow: "h1 -> h4 QP 0x1a2b".
[[nodiscard]] std::string label_of(const Fabric& fabric, const FlowId& id);

/// Takes the snapshot.
class PlanBuilder {
 public:
  struct Parts {
    const Fleet* fleet;
    Routing* routing;
    EcmpKnowledge* knowledge;
    const Mover* mover;
    const SwitchTrials* trials;
    const LinkWatch* link_watch;
    const Overrides* overrides;
  };
  PlanBuilder(const Parts& parts, const PlanningOptions& options) : parts_(parts), options_(options) {}

  [[nodiscard]] std::shared_ptr<const PlanJob> build(std::shared_ptr<const Fabric> fabric, std::int64_t now_ns);
  /// Why the flow cannot be moved now; empty: it can.
  [[nodiscard]] std::string immovable(const Flow& flow, std::int64_t now_ns) const;
  /// Why the port does not decide over this way of the flow, as far as is shown; empty: it does. `must`: the flow has
  /// to leave it, and a switch that has not shown anything yet gets the benefit of the doubt.
  [[nodiscard]] std::string not_by_port(const Fabric& fabric, std::span<const LinkId> way, const AddressPair& pair,
                                        bool must) const;
  /// Why nobody can steer the flow; empty: its sender can.
  [[nodiscard]] std::string unsteerable(const Flow& flow) const;

 private:
  /// Options of a pair, kept from job to job while nothing is learned of it.
  struct Kept {
    std::uint64_t version = 0;   ///< EcmpKnowledge::version_of(), when they were read
    std::uint64_t last_job = 0;  ///< that asked for them
    PairOptions options;
  };
  /// A pair while a job is made.
  struct PairInJob {
    AddressPair pair;
    const PairOptions* options = nullptr;
    std::vector<traffic::PathIndex> indices;  ///< by path
    std::vector<bool> by_port;                ///< by path: the port decides over it, as far as is shown
    std::string label;                        ///< of its flows, without the QP
  };
  const PairOptions& options_for(const AddressPair& pair);
  [[nodiscard]] PairInJob begin_pair(PlanJob& job, const AddressPair& pair);
  [[nodiscard]] traffic::PlanFlow snapshot(PlanJob& job, const PairInJob& pair, const Flow& flow, bool& forced,
                                           std::int64_t now_ns) const;
  void add_candidates(const Fabric& fabric, const PairInJob& pair, const Flow& flow, const traffic::PlanFlow& planned,
                      bool forced, std::vector<traffic::Candidate>& candidates) const;

  Parts parts_;
  PlanningOptions options_;
  std::unordered_map<AddressPair, Kept> kept_;
  std::uint64_t jobs_ = 0;
};

}  // namespace te
