// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <map>
#include <optional>
#include <span>
#include <string>
#include <unordered_map>
#include <vector>

#include "common/base/result.h"
#include "host-agent/core/backoff.h"
#include "host-agent/core/flow_key_hash.h"
#include "host-agent/core/flow_sample.h"

namespace te::agent {

/// A flow and the source port it is, or shall be, steered to.
struct Steering {
  FlowKey key;
  std::uint16_t port = 0;
  auto operator<=>(const Steering&) const = default;
};

struct SteeringProblem {
  Steering steering;
  std::string reason;
};

/// Why an entry is let go though the controller may still want it, and until when: for good, or until the flow sends
/// again. A set without the entry, or with another port for the flow, ends it in any case.
struct Release {
  std::string reason;
  bool until_it_sends = false;
};

/// Makes what the kernel holds equal to what the controller wants, one entry a flow. Fail static: until a controller
/// has said what it wants (and again after every restart) nothing is touched but what release() names.
class SteeringReconciler {
 public:
  struct Limits {
    std::int64_t retry_first_ns = 200'000'000;
    std::int64_t retry_most_ns = 10'000'000'000;
    std::size_t entries = 32768;
  };

  SteeringReconciler() : SteeringReconciler(Limits{}) {}
  explicit SteeringReconciler(Limits limits) : limits_(limits) {}

  /// A new session with a controller: its first set counts whatever its revision, later ones must not be older.
  void begin_session() { session_revision_.reset(); }
  /// Takes what shall be; an older revision than this session's last is ignored (false). Entries that cannot be (port
  /// out of range, a flow twice, too many) become problems.
  bool want(std::uint64_t revision, std::span<const Steering> entries);
  /// Takes what the kernel holds, from a full reading. A flow that has appeared is worked on again at once.
  void observe(std::span<const FlowSample> samples);
  /// Lets an entry go that has become stale, whatever the controller wants; false when the flow is not steered, or let
  /// go already.
  bool release(const FlowKey& key, Release why);
  /// What to do now; port 0: let go. Each must be answered with done().
  [[nodiscard]] std::vector<Steering> due(std::int64_t now_ns) const;
  /// Tells how an action went; a failed one is tried again after a back-off.
  void done(const Steering& action, const Result<void>& outcome, std::int64_t now_ns);

  /// Last revision taken; 0 before the first.
  [[nodiscard]] std::uint64_t revision() const { return revision_; }
  [[nodiscard]] bool has_wish() const { return has_wish_; }
  [[nodiscard]] bool wants(const FlowKey& key) const { return wanted_port(key) != 0; }
  /// What the kernel holds, ordered by flow.
  [[nodiscard]] std::vector<Steering> programmed() const;
  [[nodiscard]] std::vector<SteeringProblem> problems() const;
  /// Changes whenever programmed() or problems() may have: time to report.
  [[nodiscard]] std::uint64_t generation() const { return generation_; }
  /// When due() will have something that failed before; the largest int64 when nothing waits.
  [[nodiscard]] std::int64_t retry_at() const;

 private:
  struct Failure {
    Steering action;
    std::string reason;
    std::int64_t retry_ns = 0;
    Backoff backoff;
  };

  struct Released {
    Release why;
    std::uint16_t port = 0;
    std::optional<std::uint64_t> packets;  // of the flow, as last read
  };

  void drop_settled_failures();
  void end_releases(const std::map<FlowKey, std::uint64_t>& packets);
  [[nodiscard]] std::uint16_t wanted_port(const FlowKey& key) const;
  [[nodiscard]] std::uint16_t programmed_port(const FlowKey& key) const;

  Limits limits_;
  bool has_wish_ = false;
  std::uint64_t revision_ = 0;
  std::optional<std::uint64_t> session_revision_;
  std::unordered_map<FlowKey, std::uint16_t> wanted_;
  std::map<FlowKey, std::uint16_t> programmed_;
  std::map<FlowKey, Failure> failures_;
  std::map<FlowKey, Released> released_;
  std::vector<SteeringProblem> refused_;             // entries of the last set that cannot be
  std::unordered_map<FlowKey, std::uint64_t> seen_;  // wanted flows in the kernel, and the reading that had them
  std::uint64_t reading_ = 0;
  std::uint64_t generation_ = 0;
};

}  // namespace te::agent
