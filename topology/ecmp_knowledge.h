// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <compare>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <map>
#include <optional>
#include <span>
#include <string>
#include <unordered_map>
#include <vector>

#include "common/base/ip_address.h"
#include "common/base/result.h"
#include "topology/fabric.h"
#include "topology/routing.h"

namespace te {

/// RoCEv2 source ports that we set and probe (facts/rocev2.md).
inline constexpr std::uint16_t kFirstRocePort = 0xC000;
inline constexpr std::uint16_t kLastRocePort = 0xFFFF;

/// What switches hash besides the source port (the destination port is always 4791). `vlan` 0: untagged.
struct AddressPair {
  IpAddress source;
  IpAddress destination;
  std::uint16_t vlan = 0;
  auto operator<=>(const AddressPair&) const = default;
};

}  // namespace te

template <>
struct std::hash<te::AddressPair> {
  std::size_t operator()(const te::AddressPair& pair) const noexcept {
    const std::uint64_t source = te::fnv1a(pair.source.bytes());
    return static_cast<std::size_t>((te::fnv1a(pair.destination.bytes(), source) ^ pair.vlan) * 0x100000001b3ULL);
  }
};

namespace te {

enum class HopSource : std::uint8_t { kProbe, kSeen };

/// One lesson: at `at`, packets of (pair, port) leave by `link`, or by one of the links parallel to it (`parallel`).
struct Hop {
  NodeId at = kNoId;
  LinkId link = kNoId;
  bool parallel = false;
  HopSource source = HopSource::kProbe;
};

/// Which way (pair, port) goes, as far as it is known.
struct ComposedPath {
  enum class Status : std::uint8_t {
    kKnown,          ///< every hop; hops with one equal-cost next link need no knowledge
    kOneOfParallel,  ///< every switch; at `parallel_hops` the link is one of those parallel to the one in `links`
    kPartlyKnown,    ///< `links` ends at `unknown_at`
    kNotAFunction,   ///< `unknown_at` does not choose by the port
    kBroken,         ///< `links` ends with one that is down: what is sent is lost there
    kNoRoute,        ///< no equal-cost path, or an address nobody owns
  };
  Status status = Status::kNoRoute;
  std::vector<LinkId> links;                 ///< from the source NIC port on
  std::vector<std::uint32_t> parallel_hops;  ///< indices into `links`
  NodeId unknown_at = kNoId;
  std::int64_t oldest_ns = 0;     ///< when the oldest hop used was last confirmed; 0: none was needed
  std::uint8_t confidence = 255;  ///< of the weakest hop used: agreeing answers, 255: none was needed
  /// Known, or known up to parallel links.
  [[nodiscard]] bool reaches() const { return status == Status::kKnown || status == Status::kOneOfParallel; }
};

/// Ports that lead onto one path: surely, or (parallel links) perhaps.
struct PathPorts {
  std::vector<std::uint16_t> ports;
  std::vector<std::uint16_t> maybe;
};

/// A TTL worth probing: `choosing` are the switches whose choice its answer tells, `answering` those that may answer it
/// (the budget of probes is per answering switch).
struct HopToLearn {
  std::uint32_t ttl = 0;
  std::vector<NodeId> choosing;
  std::vector<NodeId> answering;
};

/// What one lesson changed.
enum class Lesson : std::uint8_t {
  kNothing,  ///< no choice was made there
  kNew,
  kConfirmed,
  kContradicted,        ///< the hop is doubted now: probe it again
  kReplaced,            ///< what was held before is gone
  kSwitchNotAFunction,  ///< the verdict stands; nothing is kept
};

enum class SwitchEcmp : std::uint8_t { kUnknown, kLearned, kNotAFunction };
[[nodiscard]] std::string_view to_string(SwitchEcmp state);

struct SwitchKnowledge {
  SwitchEcmp state = SwitchEcmp::kUnknown;
  std::uint32_t epoch = 0;
  std::size_t hops = 0;  ///< entries held, of any epoch
};

/// ECMP knowledge per hop: (switch, group epoch, source, destination, VLAN, port) -> next link.
///
/// Epochs: when the equal-cost next links of a switch change towards any host, its epoch grows (sync()). A hop is kept
/// with the group (set of next links) it was learned under and is used only while that group is in force; knowledge
/// from before the last epoch counts again once one hop of the same group was seen to agree, and is dropped once one
/// was seen not to.
///
/// Contradictions: an answer unlike the one held makes the hop doubted (unknown until probed again); a second like it
/// replaces it. A port that keeps changing counts against the switch: after kVerdict such returns in an epoch the
/// switch is *not a function of the port*, until its next epoch. One odd answer is no verdict.
///
/// Memory: 24 bytes a hop and about 200 a pair; beyond `max_hops` the pairs used longest ago are forgotten.
/// The fabric behind `routing` must outlive it; not for use by two threads at once.
class EcmpKnowledge {
 public:
  static constexpr std::uint32_t kVerdict = 2;
  static constexpr std::uint32_t kSilentChanges = 2;
  static constexpr std::size_t kDefaultMaxHops = std::size_t{4} << 20;

  explicit EcmpKnowledge(Routing& routing, std::size_t max_hops = kDefaultMaxHops);

  /// Call after each change of the fabric's paths: bumps epochs of switches whose groups changed; returns those
  /// switches.
  std::vector<NodeId> sync();

  /// Takes one lesson. Errors: the link is no equal-cost next link there; an address nobody owns.
  Result<Lesson> learn(const AddressPair& pair, std::uint16_t port, const Hop& hop, std::int64_t now_ns);
  /// Takes the answer of a probe with `ttl` (>= 1) from `responder`. Give the answers of a port in order of TTL: one
  /// from deeper needs the hops before it. Errors (nothing is learned): nobody owns `responder`; it is on no equal-cost
  /// path at that distance; hops before are not known.
  Result<Lesson> learn_probe(const AddressPair& pair, std::uint16_t port, std::uint32_t ttl, const IpAddress& responder,
                             std::int64_t now_ns);

  /// The way of (pair, port).
  [[nodiscard]] ComposedPath compose(const AddressPair& pair, std::uint16_t port);
  /// The same, kept until something changes it: for what asks for the way of each flow again and again, and fastest
  /// pair by pair. Its `oldest_ns` and `confidence` may be older. Valid until the next call that is not const.
  [[nodiscard]] const ComposedPath& way(const AddressPair& pair, std::uint16_t port);
  /// Grows with each change of what is known of the pair's ways; above 0.
  [[nodiscard]] std::uint64_t version_of(const AddressPair& pair);
  /// For each of `paths` (of this pair), the ports known to lead there, ascending. Empty ports and maybe: none known
  /// yet.
  [[nodiscard]] std::vector<PathPorts> ports_by_path(const AddressPair& pair, std::span<const Path> paths);
  /// A port of the pair whose way ends at `link`, which is down.
  [[nodiscard]] std::optional<std::uint16_t> port_that_ends_at(const AddressPair& pair, LinkId link);
  /// TTLs whose answers tell something: only hops with more than one choice, never one that reaches the destination
  /// host. Empty: a single path, nothing to learn (or no route).
  [[nodiscard]] std::vector<HopToLearn> hops_to_learn(const AddressPair& pair);
  /// Ports of the pair of which something was learned but whose way is not known now: doubted, or from an epoch before
  /// and not checked. Ascending. Probe a few (in use first): one check may bring the rest back.
  [[nodiscard]] std::vector<std::uint16_t> ports_to_check(const AddressPair& pair);
  /// Up to `count` ports of the RoCE range of which nothing was learned yet, in an order that differs between pairs.
  [[nodiscard]] std::vector<std::uint16_t> untried_ports(const AddressPair& pair, std::size_t count) const;
  [[nodiscard]] std::size_t ports_tried(const AddressPair& pair) const;

  /// Doubts every hop of (pair, port): it went another way than predicted.
  void doubt(const AddressPair& pair, std::uint16_t port);
  /// Takes the verdict "not a function of the port" back: what was learned there counts no more.
  void trust_again(NodeId node);
  /// Marks the pair as in use.
  void touch(const AddressPair& pair, std::int64_t now_ns);
  /// Forgets pairs neither learned of nor touched for `age_ns`; returns how many.
  std::size_t forget_unused(std::int64_t now_ns, std::int64_t age_ns);

  [[nodiscard]] SwitchKnowledge switch_knowledge(NodeId node) const;
  [[nodiscard]] std::size_t hops() const { return hops_; }
  [[nodiscard]] std::size_t pairs() const { return pairs_.size(); }

 private:
  using GroupId = std::uint32_t;
  /// A hop as stored. `last_answer` is unlike `link` only while the hop is doubted.
  struct Entry {
    std::int64_t confirmed_ns = 0;
    LinkId link = kNoId;
    LinkId last_answer = kNoId;
    GroupId group = 0;
    std::uint32_t epoch = 0;
    std::uint16_t port = 0;
    std::uint8_t confidence = 1;
    std::uint8_t flips = 0;
    bool parallel = false;
    bool doubted = false;
    HopSource source = HopSource::kProbe;
  };
  /// One set of equal-cost next links of one switch. Its hops count from `floor_epoch` on; those of an epoch before the
  /// switch's only when `confirmed_epoch` is the switch's.
  struct Group {
    NodeId at = kNoId;
    std::vector<LinkId> members;
    std::uint32_t floor_epoch = 0;
    std::uint32_t confirmed_epoch = 0;
  };
  struct SwitchState {
    std::uint32_t epoch = 1;
    std::uint32_t points = 0;          ///< returns of answers that had changed before
    std::uint32_t silent_changes = 0;  ///< hops that settled at another link within this epoch
    bool not_a_function = false;
    std::size_t hops = 0;
  };
  struct PairState {
    std::vector<Entry> entries;  ///< by (port, group)
    std::int64_t last_used_ns = 0;
    std::uint64_t changed = 0;  ///< changes_ when last something was learned that a way may show
  };
  /// What way() has told of a pair.
  struct Ways {
    std::uint64_t as_of = 0;  ///< changes_ when it was composed
    std::vector<std::uint16_t> ports;
    std::vector<ComposedPath> paths;  ///< by index into `ports`
  };
  struct Ends {
    PortId source = kNoId;
    PortId destination = kNoId;
    LinkId first = kNoId;
    NodeId goal = kNoId;
  };

  [[nodiscard]] std::optional<Ends> find_ends(const AddressPair& pair) const;
  void follow_fabric();
  GroupId intern(NodeId at, std::span<const LinkId> members);
  GroupId group_of(NodeId at, PortId destination);
  [[nodiscard]] static const Entry* find(const PairState* state, std::uint16_t port, GroupId group);
  [[nodiscard]] const PairState* find(const AddressPair& pair) const;
  [[nodiscard]] bool usable(const Entry& entry) const;
  [[nodiscard]] bool agrees(LinkId held, bool held_parallel, LinkId told, bool told_parallel) const;
  Result<Lesson> learn_at(const AddressPair& pair, std::uint16_t port, GroupId group, const Hop& hop,
                          std::int64_t now_ns);
  Lesson revise(Entry& entry, const Hop& hop, std::int64_t now_ns);
  Lesson contradict(Entry& entry, const Hop& hop, std::int64_t now_ns);
  void agree(Entry& entry, const Hop& hop, std::int64_t now_ns);
  void overwrite(Entry& entry, const Hop& hop, std::int64_t now_ns);
  bool flip(Entry& entry, LinkId answer);
  [[nodiscard]] std::vector<NodeId> possible_switches(const PairState* state, std::uint16_t port, const Ends& ends,
                                                      std::uint32_t distance);
  ComposedPath compose(const PairState* state, const Ends& ends, std::uint16_t port);
  Ways& ways_of(const AddressPair& pair);
  void drop_ways();
  /// Ways of all pairs may have changed.
  void all_changed() { all_changed_ = ++changes_; }
  void make_room(const AddressPair& keep);
  void release(const PairState& state);

  Routing* routing_;
  std::size_t max_hops_;
  std::size_t hops_ = 0;
  std::uint64_t version_;
  std::vector<Group> groups_;
  std::map<std::pair<NodeId, std::vector<LinkId>>, GroupId> group_by_members_;
  std::unordered_map<std::uint64_t, GroupId> group_in_force_;  ///< by (switch, destination port)
  std::vector<SwitchState> switches_;                          ///< by NodeId
  std::vector<NodeId> bumped_;
  std::unordered_map<AddressPair, PairState> pairs_;
  std::uint64_t changes_ = 1;
  std::uint64_t all_changed_ = 1;
  std::unordered_map<AddressPair, Ways> ways_;
  std::pair<const AddressPair, Ways>* last_ways_ = nullptr;  ///< of the pair that way() was asked for last
};

}  // namespace te
