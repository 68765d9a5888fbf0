// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <functional>
#include <map>
#include <set>
#include <span>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "topology/ecmp_knowledge.h"
#include "topology/routing.h"

namespace te {

/// Whether a switch chooses among its equal-cost next links by the source port, as probes show.
enum class SwitchManner : std::uint8_t {
  kUnknown,      ///< not shown yet: flows there are not moved
  kByPort,       ///< the same port goes the same way again, and others go other ways
  kIgnoresPort,  ///< all ports of a pair go one way: it hashes something else (the destination QP, only addresses)
  kVaries,       ///< one port goes different ways: it sprays packets, or routes adaptively
  kSilent,       ///< it answers no probe, while its neighbours in the group do
};
/// "unknown", "by port", "not by port", "varies", "silent".
[[nodiscard]] std::string_view to_string(SwitchManner manner);

/// Puts every switch that has a choice on trial before flows are moved there, and again now and then: some ports are
/// probed twice. The verdict is drawn where chance would deceive it less than once in 2^16 trials (2^24 for "not by
/// port", as hashes may be linear). A bad verdict is reviewed every kReviewNs, a good one spot-checked. Pure.
class SwitchTrials {
 public:
  static constexpr std::int64_t kReviewNs = 15'000'000'000;
  static constexpr std::int64_t kSpotCheckNs = 8'000'000'000;
  static constexpr std::int64_t kSilentNs = 10'000'000'000;
  static constexpr std::uint32_t kUnanswered = 4;
  static constexpr std::size_t kSpotPorts = 3;
  static constexpr std::size_t kRepeats = 8;  ///< under way at a time, of each switch
  static constexpr std::size_t kKept = 64;    ///< ports of evidence, of each switch

  /// `routing` outlives it.
  explicit SwitchTrials(Routing& routing) : routing_(&routing) {}

  /// The answer of one probe: a port of `pair` took the link behind which the answering switch sits.
  void take(const AddressPair& pair, std::uint16_t port, LinkId link, std::int64_t now_ns);
  /// The switch answered a probe, whatever it tells.
  void heard(NodeId node);
  /// Groups changed there: evidence from before counts no more.
  void begin_anew(NodeId node);
  /// Ports to probe now, so that a verdict can be drawn. Call every few tens of milliseconds. `active`: pairs that can
  /// be probed; evidence of others is dropped.
  std::vector<std::pair<AddressPair, std::uint16_t>> wanted(const std::function<bool(const AddressPair&)>& active,
                                                            std::int64_t now_ns);

  [[nodiscard]] SwitchManner manner(NodeId node) const;
  /// What is said of it, for people: "all of 13 ports of h1 -> h5 go one way"; empty: nothing is shown yet.
  [[nodiscard]] std::string evidence(NodeId node) const;
  /// The first switch of a way that has a choice and does not choose by the port, as far as is shown; kNoId: none.
  [[nodiscard]] NodeId untrusted_on(std::span<const LinkId> way, PortId destination) const;
  /// True once since the last call when a verdict changed.
  [[nodiscard]] bool take_changed() { return std::exchange(changed_, false); }

 private:
  struct Port {
    LinkId link = kNoId;  ///< of the last answer
    std::uint32_t agreed = 0;
    std::uint32_t differed = 0;
    std::int64_t asked_ns = 0;  ///< probed again, no answer yet; 0: not
  };
  using Key = std::pair<AddressPair, std::uint16_t>;
  struct Trial {
    SwitchManner manner = SwitchManner::kUnknown;
    bool closed = false;  ///< a bad verdict stands until its review
    std::string evidence;
    std::map<Key, Port> ports;    ///< evidence for the next verdict
    std::vector<Key> to_ask;      ///< ports whose evidence was given up
    std::size_t fewest_ways = 0;  ///< equal-cost next links, of the smallest group seen
    std::int64_t judged_ns = 0;   ///< last verdict or review
    std::int64_t spot_ns = 0;
    std::size_t spot = 0;  ///< whose turn it is
  };

  void judge(Trial& trial, std::int64_t now_ns);
  void decide(Trial& trial, SwitchManner manner, std::string evidence, std::int64_t now_ns);
  static void start_over(Trial& trial);
  void plan(Trial& trial, std::vector<Key>& ask, std::int64_t now_ns);
  void note_unanswered(Trial& trial, std::int64_t now_ns);
  void look_for_silence(const Trial& trial, NodeId at, std::int64_t now_ns);

  Routing* routing_;
  std::map<NodeId, Trial> trials_;
  std::set<NodeId> heard_;
  std::map<NodeId, std::uint32_t> unanswered_;      ///< probes of ports that lead there, since it was heard last
  std::map<NodeId, std::int64_t> missed_since_ns_;  ///< never heard, while others of its group were
  std::set<NodeId> silent_;
  bool changed_ = false;
};

}  // namespace te
