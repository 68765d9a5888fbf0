// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <map>
#include <string>

#include "te-controller/engine/fleet.h"

namespace te {

/// Whether agents that are expected back soon are still missing: after a start of the controller all of them, later
/// those whose session ended. What is planned without their flows would be planned anew with them. Pure.
class Attendance {
 public:
  /// So long an agent is waited for.
  static constexpr std::int64_t kReturnNs = 10'000'000'000;
  /// An agent whose session was shorter is not waited for: one that comes and goes must not hold up the others.
  static constexpr std::int64_t kSteadyNs = 10'000'000'000;
  /// An agent is back once it has reported for so many intervals: its first rates are none.
  static constexpr std::int64_t kIntervals = 3;

  /// `fleet` outlives it.
  Attendance(const Fleet& fleet, std::int64_t started_ns, std::int64_t report_interval_ns)
      : fleet_(&fleet), started_ns_(started_ns), interval_ns_(report_interval_ns) {}

  /// The node has no session any more; call it before the fleet hears of it.
  void leaves(const std::string& node, std::int64_t now_ns);
  /// One of the hosts that are waited for; empty: none.
  [[nodiscard]] std::string missing(std::int64_t now_ns) const;

 private:
  const Fleet* fleet_;
  std::int64_t started_ns_;
  std::int64_t interval_ns_;
  std::map<std::string, std::int64_t> left_ns_;  ///< steady sessions only: when they ended
};

}  // namespace te
