// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "common/base/result.h"
#include "lab/cable_end.h"
#include "lab/cable_loss.h"
#include "lab/degradation.h"

namespace te::lab {

// `port`: NODE:PORT, either end of a cable. Times are CLOCK_MONOTONIC.

/// Cuts a cable; returns when both ends have lost their carrier. The result is the time just before the cut.
Result<std::int64_t> fail_cable(const std::string& id, const std::string& port);
/// Makes a cable as new: whole, without loss, at its own rate; on a whole one nothing happens. Returns when both ends
/// have their carrier; the result is the time of that.
Result<std::int64_t> restore_cable(const std::string& id, const std::string& port);
/// Worsens the direction that `port` sends, in place of an earlier degradation.
Result<void> degrade_port(const std::string& id, const std::string& port, const Degradation& degradation);

struct DegradedPort {
  CableEnd end;
  Degradation degradation;
  LossCounts counts;
};

struct Faults {
  std::vector<std::size_t> cut;  ///< indices into Fabric::links
  std::vector<DegradedPort> degraded;
};

/// What is wrong with the cables of a lab. Leaves the calling process in the cables' namespace.
Result<Faults> read_faults(const std::string& id, const Fabric& fabric);

}  // namespace te::lab
