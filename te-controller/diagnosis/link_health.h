// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "topology/fabric.h"

namespace te::diagnosis {

/// What a direction of a cable is like, whoever says so.
enum class LinkCondition : std::uint8_t {
  kUnknown,   ///< nobody has said anything of it yet
  kHealthy,   ///< it carries: a port says so, or what was sent arrived
  kSuspect,   ///< one of a few links of which one loses packets
  kFailing,   ///< it loses packets
  kDown,      ///< it carries nothing
  kFlapping,  ///< it went down again and again, and is not trusted yet
};
[[nodiscard]] std::string_view to_string(LinkCondition condition);

struct LinkStatus {
  LinkCondition condition = LinkCondition::kUnknown;
  std::int64_t since_ns = 0;
  std::string evidence;  ///< for people: who says so, and what was seen
};

/// One link that explains the losses of flows, or one of `candidates` that do so alike: those of one `place`.
struct LossSuspect {
  LinkId link = kNoId;
  std::uint32_t place = 0;
  std::size_t candidates = 1;
  std::size_t flows = 0;  ///< that lose packets on it
  double loss = 0;        ///< share of packets, mean over these flows
};

/// Weighs what ports, flows and probes say of each link, and keeps one status for it.
///
/// Down: at once when a port at either end has no carrier, for both directions. Without such a port: when kSilences
/// probes were answered up to the link and not behind it, and nothing was seen to come through since; then the other
/// direction is taken for down too, as cables fail as a whole, until something comes through it.
/// Up again: when all ports that speak for it have carrier, or something came through, for kHoldNs; after kFlaps falls
/// within kFlapWindowNs it is flapping until kFlapWindowNs have passed without one.
/// Losing packets: as told by suspect(); trusted again when there was no sign of it for a probation of kProbationNs,
/// twice as long each time it comes back.
/// Pure: times are arguments, all of one monotonic clock.
class LinkHealth {
 public:
  static constexpr std::uint32_t kSilences = 2;
  static constexpr std::int64_t kSilenceWindowNs = 5'000'000'000;
  static constexpr std::int64_t kHoldNs = 500'000'000;
  static constexpr std::uint32_t kFlaps = 3;
  static constexpr std::int64_t kFlapWindowNs = 60'000'000'000;
  static constexpr std::int64_t kProbationNs = 60'000'000'000;
  static constexpr std::int64_t kLongestProbationNs = 3'600'000'000'000;

  explicit LinkHealth(const Fabric& fabric) : fabric_(&fabric), links_(fabric.links().size()) {}

  /// A port's own word; true when it is news. A carrier that is there, after it was not or nobody spoke, undoes what
  /// silence had said: silence would say it again.
  bool carrier(PortId port, bool has_carrier);
  /// The port's agent is gone: its word counts no more. What it said was down is so until something comes through.
  void no_word(PortId port, std::int64_t now_ns);
  /// A flow that goes over the link, as far as is known, is received. What is down stays so: its way may have changed.
  void passed(LinkId link, std::int64_t now_ns);
  /// A probe was answered by the port behind the link. A cable that was down comes back as a whole.
  void proved(LinkId link, std::int64_t now_ns);
  /// `probes` of one way were answered by the switch in front of the link and by none behind it.
  void silent(LinkId link, std::uint32_t probes, std::int64_t now_ns);
  /// All links that flows' losses point at now. A place that a link explains which is suspect already makes no others
  /// so.
  void suspect(std::span<const LossSuspect> suspects, std::int64_t now_ns);

  /// Flows cross the link and lose nothing: it is no suspect any more, if only because it might have been.
  void clean(LinkId link);

  /// What flows' losses said of any link was no loss.
  void forget_losses();

  /// Draws the conclusions; returns the links whose condition changed. Call after news and every few tens of
  /// milliseconds.
  std::vector<LinkId> judge(std::int64_t now_ns);

  [[nodiscard]] const LinkStatus& status(LinkId link) const { return links_[link].status; }
  /// True when only what comes through can tell that the link is up again: no port speaks for it.
  [[nodiscard]] bool needs_proof(LinkId link) const;

 private:
  struct Track {
    LinkStatus status;
    std::optional<bool> sender_carrier;    ///< of the port that sends into it
    std::optional<bool> receiver_carrier;  ///< of the port that it arrives at
    std::uint32_t silences = 0;            ///< since something came through
    std::int64_t first_silence_ns = 0;
    std::int64_t passed_ns = 0;   ///< last; 0: never
    std::int64_t proved_ns = 0;   ///< last; 0: never
    std::int64_t working_ns = 0;  ///< nothing has said that it is down since; 0: something does
    std::vector<std::int64_t> falls_ns;
    std::optional<LossSuspect> loss;  ///< newest sign
    std::int64_t loss_ns = 0;         ///< when
    std::int64_t probation_ns = 0;
  };

  [[nodiscard]] bool is_silent(const Track& track) const { return track.silences >= kSilences; }
  /// True when the other direction is silent and nothing speaks for this one.
  [[nodiscard]] bool falls_with_reverse(LinkId link) const;
  /// Empty: nothing says so.
  [[nodiscard]] std::string why_down(LinkId link) const;
  [[nodiscard]] LinkStatus conclude(LinkId link, std::int64_t now_ns);
  void suspect_one(const LossSuspect& one, std::size_t candidates, std::int64_t now_ns);
  [[nodiscard]] std::optional<LinkStatus> losses(LinkId link, std::int64_t now_ns) const;

  const Fabric* fabric_;
  std::vector<Track> links_;
};

}  // namespace te::diagnosis
