// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <string>

#include "common/base/result.h"
#include "lab/cable_end.h"

namespace te::lab {

/// Packets of one direction since it was degraded.
struct LossCounts {
  std::uint64_t passed_packets = 0;
  std::uint64_t lost_packets = 0;
};

// All of these run in the cables' namespace. `bpffs`: where the lab's counts are pinned.

/// Lets a cable lose a share of the packets that `end` sends; counts start from 0.
Result<void> start_loss(const std::string& bpffs, const CableEnd& end, double loss);
/// Undoes it; without a loss on that end nothing happens.
Result<void> end_loss(const std::string& bpffs, const CableEnd& end);
Result<LossCounts> read_loss(const std::string& bpffs, const CableEnd& end);

}  // namespace te::lab
