// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <vector>

#include "te-controller/engine/fleet.h"
#include "te-controller/engine/ledger.h"
#include "te-controller/engine/move_follower.h"
#include "te-controller/engine/prober.h"
#include "te-controller/engine/steering.h"
#include "te-controller/traffic/cool_down.h"
#include "te-controller/traffic/move_state.h"
#include "te-controller/traffic/verify.h"
#include "topology/ecmp_knowledge.h"

namespace te {

/// A move to carry out, as planned.
struct MoveOrder {
  FlowId flow;
  std::uint16_t from_port = 0;
  std::uint16_t to_port = 0;
  std::vector<LinkId> from_links;  ///< empty: unknown
  std::vector<LinkId> to_links;
  v1::MoveView record;  ///< for the ledger
};

/// Carries moves out and checks them: steering sent -> reported in force -> new port on the wire -> path as a fresh
/// probe says -> rates against before; then verified, or taken back. Moves made within kGroupOpenNs are judged
/// together, after the last of them was seen, by at least kIntervals whole report intervals while flows send; a verdict
/// of "worse" must repeat itself before anything is taken back. Pure.
class Mover {
 public:
  static constexpr std::int64_t kGroupOpenNs = 1'000'000'000;
  static constexpr std::size_t kIntervals = 2;
  static constexpr std::size_t kBurstyIntervals = 6;  ///< where most flows did not send all the time before

  struct Parts {
    const Fabric* fabric;
    const Fleet* fleet;
    EcmpKnowledge* knowledge;
    Prober* prober;
    Steering* steering;
    Ledger* ledger;
  };
  Mover(const Parts& parts, std::int64_t cooldown_ns, std::int64_t report_interval_ns)
      : parts_(parts),
        follower_(*parts.fleet, *parts.ledger),
        cool_down_(cooldown_ns),
        interval_ns_(report_interval_ns) {}

  /// False while moves are being judged: a new one would blur what is measured.
  [[nodiscard]] bool may_start(std::int64_t now_ns) const;
  /// True when it was started: the sender has an agent and the flow is not being moved already.
  bool start(const MoveOrder& order, std::int64_t now_ns);
  /// Puts a flow off a way that carries nothing or must not be used: at any time, whatever is being judged, and not
  /// judged itself. False when it cannot be, or a move of that kind is on its way.
  bool force(const MoveOrder& order, std::int64_t now_ns);
  /// Notes that steering of the flow was taken back (a pause), and follows until its own port is on the wire again.
  /// Call once the desired set is without it.
  void follow_release(const Flow& flow, v1::MoveView record, std::int64_t now_ns);

  /// An agent came back with steering that an earlier one left in force, maybe without a word: moves on their way that
  /// are among it have arrived. An Error: malformed.
  Result<void> take_hello(const std::string& node, const v1::Hello& hello, std::int64_t now_ns);
  /// An Error: malformed.
  Result<void> take_report(const std::string& node, const v1::SteeringReport& report, std::int64_t now_ns);
  /// Looks at what reports and probes showed since. Call after each report and every few tens of milliseconds.
  void observe(std::int64_t now_ns);
  void flow_ended(const FlowId& flow);
  /// Drops what is too old to matter.
  void forget(std::int64_t now_ns);
  /// Ends the judging of all moves under way; their steering stays as it is desired.
  void supersede_all(const std::string& reason);

  /// The port the flow has, or will have once what is on its way is in force.
  [[nodiscard]] std::uint16_t expected_port(const Flow& flow, std::int64_t now_ns) const;
  /// Why the flow must not be moved now; empty: it may.
  [[nodiscard]] std::string hold(const Flow& flow, std::int64_t now_ns) const;
  [[nodiscard]] std::size_t under_way() const { return moves_.size(); }

 private:
  struct Move {
    int number = 0;
    std::string node;
    SteeringKey key;
    std::optional<std::uint16_t> steered_before;  ///< absent: the port was the QP's own
    MoveOrder order;
    traffic::MoveState state = traffic::MoveState::kSent;
    std::uint64_t revision = 0;
    std::int64_t sent_ns = 0;
    std::int64_t programmed_ns = 0;
    std::int64_t seen_ns = 0;
    std::optional<bool> path_as_planned;
  };
  struct Before {
    double rate_bps = 0;
    std::vector<LinkId> links;
  };
  struct Expectation {
    std::uint16_t port = 0;
    std::int64_t until_ns = 0;
  };

  Move send(const MoveOrder& order, const Flow& flow, std::int64_t now_ns);
  void take(const std::string& node, const SteeringNews& news, std::int64_t now_ns);
  void open_group(std::int64_t now_ns);
  void look_at_wire(Move& move, std::int64_t now_ns);
  void look_at_path(Move& move, std::int64_t now_ns) const;
  [[nodiscard]] bool ready_to_judge(std::int64_t now_ns) const;
  void judge(std::int64_t now_ns);
  struct Rates;
  [[nodiscard]] Rates measure(std::int64_t now_ns) const;
  /// The flow stopped with its move while most others go on: its new path carries nothing.
  [[nodiscard]] static bool stopped_alone(const Rates& rates, const FlowId& flow);
  void end(Move& move, traffic::MoveEvent event, const std::string& outcome);
  void take_back(Move& move, traffic::MoveEvent event, const std::string& outcome, bool doubt, std::int64_t now_ns);
  void expect(const FlowId& flow, std::uint16_t port, std::int64_t now_ns);
  void drop_finished();

  Parts parts_;
  MoveFollower follower_;
  traffic::CoolDown cool_down_;
  std::int64_t interval_ns_;
  std::map<FlowId, Move> moves_;
  std::map<FlowId, Expectation> expected_;
  std::map<FlowId, Before> before_;  ///< of all elastic flows, when the group began
  std::int64_t group_ns_ = 0;
  std::int64_t window_ns_ = 0;  ///< rates count from here; 0: the last move has not been seen yet
  int worse_in_a_row_ = 0;
  std::size_t intervals_ = kIntervals;
};

}  // namespace te
