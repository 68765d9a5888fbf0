// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <deque>
#include <map>
#include <optional>
#include <set>
#include <string>
#include <utility>
#include <vector>

#include "te-controller/engine/flow.h"
#include "te-controller/engine/options.h"
#include "te-controller/engine/outgoing.h"
#include "te-controller/engine/switch_budget.h"
#include "topology/ecmp_knowledge.h"
#include "topology/routing.h"

namespace te {

/// A pair of addresses whose paths are to be learned, through a flow that one of the agents sends.
struct ProbeTarget {
  AddressPair pair;
  std::string node;  ///< whose agent sends the probes
  FlowId flow;
  std::uint32_t ifindex = 0;
  std::uint32_t flow_label = 0;  ///< IPv6
  bool data = false;             ///< carries message data: goes first, and gets spare ports
  std::set<std::uint16_t> ports_in_use;
};

enum class PairProgress : std::uint8_t {
  kNothingToLearn,  ///< one path, or none
  kExploring,
  kCovered,  ///< every equal-cost path has a port
  kGaveUp,   ///< as many ports tried as should have been enough, or all: some paths have none
};

struct PairState {
  PairProgress progress = PairProgress::kExploring;
  bool data = false;          ///< a flow of it carries message data
  std::int64_t since_ns = 0;  ///< first targeted
  bool silent = false;        ///< the last batch had no answer at all
  std::string problem;        ///< the agent's, from the last batch; empty: none
  std::size_t unreached_paths = 0;
  std::int64_t recheck_ns = 0;  ///< an answer contradicted what was known: all of it is checked since; 0: not
};

/// Learns which ports lead where: first ports in use, then random ones until each equal-cost path has one (two more as
/// spares), within a budget of answers a switch. Small batches of all pairs take turns. Ports in use are looked at
/// again every kRefreshNs; an answer that contradicts what is known has all of its pair checked, and the ports in use
/// of every other pair, since a switch that lost a member sends many flows elsewhere. A port whose answer fits no path
/// is left alone for kFirstRefusedNs, then twice as long each time, until knowledge changes. Pure.
class Prober {
 public:
  struct Counters {
    std::uint64_t sent = 0;  ///< packets
    std::uint64_t lost = 0;  ///< of these without an answer
    std::uint64_t refused =
        0;  ///< answers that fit no path (a switch unknown to the topology file, a route that differs)
    std::map<IpAddress, std::uint64_t> refused_by;  ///< of these, by who answered; kRespondersKept of them at most
  };

  /// `routing` and `knowledge` outlive it.
  Prober(Routing& routing, EcmpKnowledge& knowledge, const ProbingOptions& options);

  /// The pairs of flows that exist now, each once; others are dropped.
  void set_targets(std::vector<ProbeTarget> targets, std::int64_t now_ns);
  /// Knowledge changed other than by answers (epochs, doubts): all pairs are looked at again.
  void knowledge_changed();
  /// Asks for one fresh answer of a port, before everything else.
  void verify(const AddressPair& pair, std::uint16_t port);
  /// What to send now. Call every few tens of milliseconds.
  std::vector<Outgoing> next(std::int64_t now_ns);
  /// True when it taught something. An Error: malformed.
  Result<bool> take_result(const std::string& node, const v1::ProbeResult& result, std::int64_t now_ns);
  /// What the node was asked is lost.
  void disconnected(const std::string& node);

  [[nodiscard]] const std::map<AddressPair, PairState>& pairs() const { return states_; }
  /// An answer that fits the fabric: `port` of `pair` took `link`.
  struct Answer {
    AddressPair pair;
    std::uint16_t port = 0;
    LinkId link = kNoId;
  };
  /// All since the last call.
  std::vector<Answer> take_answers() { return std::exchange(answers_, {}); }
  /// What a pair is probed with; null: it has no flow now.
  [[nodiscard]] const ProbeTarget* target(const AddressPair& pair) const;
  /// Shared by all that asks switches for answers.
  [[nodiscard]] SwitchBudget& budget() { return budget_; }
  /// Answers that may be asked of a switch now; negative: in debt.
  [[nodiscard]] double answers_left(NodeId node, std::int64_t now_ns) { return budget_.left(node, now_ns); }
  [[nodiscard]] const Counters& counters() const { return counters_; }

  static constexpr std::size_t kBatchPorts = 8;
  static constexpr std::size_t kSparePorts = 2;
  static constexpr std::int64_t kRefreshNs = 30'000'000'000;
  static constexpr std::int64_t kLeastRecheckNs = 10'000'000'000;  ///< between two checks of all of a pair
  static constexpr std::int64_t kFirstRefusedNs = 1'000'000'000;
  static constexpr std::int64_t kLongestRefusedNs = 300'000'000'000;
  static constexpr std::size_t kRespondersKept = 64;
  static constexpr std::size_t kPathLimit = 256;  ///< of a pair, that are told apart

 private:
  enum class Urgency : std::uint8_t { kVerify, kInUse, kCover, kRecheck, kSpare, kRefresh };
  struct Work {
    Urgency urgency = Urgency::kSpare;
    std::vector<std::uint16_t> ports;
  };
  struct Request {
    AddressPair pair;
    std::string node;
    std::set<std::uint16_t> ports;
    std::vector<HopToLearn> hops;
    std::map<std::uint16_t, std::map<std::uint32_t, std::optional<IpAddress>>> answers;
    std::uint32_t charged = 0;  ///< packets taken from the budget
    std::uint32_t sent = 0;
    bool answered = false;
    bool accepted = false;  ///< an answer that fits a path
    bool urgent = false;
    std::int64_t deadline_ns = 0;
  };
  struct Refusal {  ///< of a port's answer
    std::int64_t back_off_ns = 0;
    std::int64_t not_before_ns = 0;
  };
  struct Pair {
    ProbeTarget target;
    std::set<std::uint16_t> to_verify;
    std::set<std::uint16_t> to_refresh;
    std::set<std::uint16_t> in_flight;
    std::map<std::uint16_t, Refusal> refused;
    std::int64_t wake_ns = 0;  ///< when the first refused port that waits may be asked again; 0: none waits
    std::int64_t refreshed_ns = 0;
    std::int64_t rechecked_ns = 0;   ///< last time all was checked; 0: never
    std::uint32_t requests = 0;      ///< in flight
    std::uint32_t urgent = 0;        ///< of these for ports in use or to verify
    std::int64_t not_before_ns = 0;  ///< back-off while no answer is of use
    std::int64_t back_off_ns = 0;
    bool stale = true;  ///< progress and spares to be worked out anew
    bool quiet = true;  ///< nothing to do until something changes; others are in awake_
    bool wants_spares = false;
  };

  std::map<AddressPair, Pair>::iterator drop(std::map<AddressPair, Pair>::iterator pair);
  void rouse(const AddressPair& pair, Pair& state);
  void rouse_those_refused(std::int64_t now_ns);
  void update_progress(const AddressPair& pair, Pair& state);
  std::optional<Work> work_for(const AddressPair& pair, Pair& state, Urgency urgency, std::int64_t now_ns);
  bool start(const AddressPair& pair, Pair& state, const Work& work, std::int64_t now_ns, std::vector<Outgoing>& out);
  bool learn(Request& request, std::uint16_t port, bool all, std::int64_t now_ns);
  void refuse(const Request& request, std::uint16_t port, const IpAddress& responder, std::int64_t now_ns);
  void contradicted(const AddressPair& pair, std::int64_t now_ns);
  void plan_refresh(std::int64_t now_ns);
  static void forget_request(Pair& pair, const Request& request);
  void finish(std::uint64_t id, Request& request, std::int64_t now_ns);
  void expire(std::int64_t now_ns);
  [[nodiscard]] std::vector<SwitchCost> costs_of(const std::vector<HopToLearn>& hops, double probes_each) const;

  Routing* routing_;
  EcmpKnowledge* knowledge_;
  ProbingOptions options_;
  SwitchBudget budget_;
  std::map<AddressPair, Pair> pairs_;
  std::map<AddressPair, Pair*> awake_;  ///< of pairs_, those with something to do
  std::int64_t wake_ns_ = 0;            ///< no Pair::wake_ns is earlier; 0: none is set
  std::map<AddressPair, PairState> states_;
  std::map<std::uint64_t, Request> requests_;
  std::uint64_t next_id_ = 1;
  std::int64_t refresh_planned_ns_ = 0;
  std::optional<AddressPair> last_served_;  ///< pairs take turns
  Counters counters_;
  std::vector<Answer> answers_;
};

}  // namespace te
