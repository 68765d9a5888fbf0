// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <functional>
#include <map>
#include <memory>
#include <set>
#include <string>
#include <vector>

#include "te-controller/engine/engine.h"
#include "tests/support/moments.h"
#include "topology/builder.h"
#include "topology/routing.h"

namespace te::testing {

/// What a QP gets at best in the default fabric: two an uplink of four, eight over three of them.
inline constexpr double kIdealBps = 25e6;
inline constexpr double kIdealOfThreeBps = 50e6 / 3;
inline constexpr double kNear = 0.95;  ///< the share of it that will do

struct SimulationSpec {
  std::uint64_t seed = 1;
  ClosSpec clos{.leaves = 2, .hosts_per_leaf = 4, .spines = 4, .cables = 1, .host_bps = 50e6, .uplink_bps = 50e6};
  int qps = 2;            ///< a connection
  bool qp_table = true;   ///< agents know local and remote QPNs
  double probe_loss = 0;  ///< share of probes without an answer
  bool switch_agents = false;
  bool route_before_ttl =
      false;                ///< switches without a way on drop packets without looking at their TTL, as Linux does
  double icmp_per_s = 200;  ///< answers that a switch gives; bursts of 50
  EngineOptions options;
};

/// A fabric with agents and RoCE flows in simulated time around a real engine. Switches hash with a random function of
/// their own that the engine does not know; flows share links by max-min fairness; a ring over all hosts that
/// alternates between the leaves.
class Simulation {
 public:
  explicit Simulation(const SimulationSpec& spec);
  Simulation(const Simulation&) = delete;
  Simulation& operator=(const Simulation&) = delete;

  /// Connects the agents at random moments of that time; flows run from the start.
  void connect_agents(std::int64_t within_ns = 300 * kMs);
  void disconnect_agent(std::size_t host);
  /// The next agent that is told to steer does so, dies before it can say so, and comes back a second later.
  void kill_next_steered() { dies_when_steered_ = true; }
  void run_for(std::int64_t ns);
  /// Runs until the slowest flow has had `bps` at every moment of `hold_ns`; returns when that began, -1: not by
  /// `limit_ns`.
  std::int64_t run_until_slowest(double bps, std::int64_t hold_ns, std::int64_t limit_ns);
  /// Replaces the engine by a fresh one that knows `state` only; agents reconnect.
  void restart_controller(const PersistentState& state, std::int64_t within_ns = 300 * kMs);
  /// The wall clock is set that much forward or back, and goes on from there.
  void jump_wall_clock(std::int64_t us) { wall_us_ += us; }
  /// All switches hash anew from now on.
  void rehash() {
    hash_seed_ += 0x9E3779B97F4A7C15ULL;
    rates_stale_ = true;
  }
  /// Cuts or mends the cable between two switches; their agents, where they have some, say so at once.
  void set_cable(const std::string& a, const std::string& b, bool works);
  /// A switch sends each packet another way (or not any more): of what crosses it, one in ten overtakes another.
  void set_spraying(const std::string& node, bool on);
  /// Flows, either direction, that lose what they send on a cut cable now.
  [[nodiscard]] std::size_t broken_flows();
  /// Flows stop or go on (jobs compute).
  void set_paused(bool paused);
  /// Agents say that they steer, but packets keep their ports.
  void break_steering() { steering_works_ = false; }

  [[nodiscard]] Engine& engine() { return *engine_; }
  [[nodiscard]] std::int64_t now() const { return now_ns_; }
  [[nodiscard]] double slowest_bps();
  [[nodiscard]] int steering_sets() const { return steering_sets_; }
  [[nodiscard]] std::size_t steered_flows() const;
  [[nodiscard]] std::size_t flows() const { return flows_.size(); }
  /// Most probe answers asked of one switch in any one second.
  [[nodiscard]] std::size_t busiest_switch_second() const;
  [[nodiscard]] PersistentState stored() const { return stored_; }

 private:
  struct SimFlow {
    FlowId id;
    std::size_t sender = 0;
    std::size_t receiver = 0;
    std::uint32_t source_qpn = 0;
    std::uint16_t source_port = 0;
    bool data = true;
    double rate_bps = 0;  ///< sent; a sender that hears nothing repeats itself
    bool arrives = true;
    bool sprayed = false;    ///< crosses a switch that sprays
    std::uint64_t gaps = 0;  ///< breaks in the sequence at the receiver
    double sent_bits = 0;    ///< in the window
    double received_bits = 0;
    double sent_bps = 0;  ///< of the last whole window
    double received_bps = 0;
  };
  struct Host {
    std::string name;
    IpAddress address;
    bool connected = false;
    bool announced = false;  ///< a complete update was sent in this session
    std::map<FlowId, std::uint16_t> steering;
  };

  void at(std::int64_t ns, std::function<void()> what) { events_.emplace(ns, std::move(what)); }
  void add_connection(std::size_t from, std::size_t to, std::uint32_t& next_qpn);
  [[nodiscard]] std::uint64_t random();
  [[nodiscard]] std::uint16_t wire_port(const SimFlow& flow) const;
  /// Ends with a link that is down where that drops it.
  [[nodiscard]] std::vector<LinkId> trace(const IpAddress& from, const IpAddress& to, std::uint16_t port);
  void update_rates();
  void connect_agent(std::size_t host);
  void connect_switch_agents();
  void report_link(LinkId link);
  void report(std::size_t host, bool whole_window);
  void tick();
  void deliver(const Outgoing& outgoing);
  void probe(std::size_t host, const v1::ProbeRequest& request);
  void steer(std::size_t host, const v1::SteeringSet& set);
  void store(const PersistentChange& change);

  SimulationSpec spec_;
  Fabric fabric_;
  Routing routing_;
  std::uint64_t random_state_;
  std::uint64_t hash_seed_;
  std::int64_t now_ns_ = 1'000'000 * kMs;
  std::int64_t accounted_ns_ = now_ns_;
  std::multimap<std::int64_t, std::function<void()>> events_;
  std::vector<Host> hosts_;
  std::vector<SimFlow> flows_;
  std::set<NodeId> spraying_;
  bool rates_stale_ = true;
  bool paused_ = false;
  bool steering_works_ = true;
  bool dies_when_steered_ = false;
  std::int64_t wall_us_;  ///< at time 0 of now_ns_
  int steering_sets_ = 0;
  std::map<NodeId, std::vector<std::int64_t>> asked_;  ///< when each switch was asked for an answer
  struct Icmp {
    double tokens = 50;
    std::int64_t filled_ns = 0;
  };
  std::map<NodeId, Icmp> icmp_;
  PersistentState stored_;
  std::unique_ptr<Engine> engine_;
};

}  // namespace te::testing
