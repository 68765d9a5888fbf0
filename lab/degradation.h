// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <string>
#include <string_view>

#include "common/base/result.h"

namespace te::lab {

/// What is wrong with the direction that a port sends.
struct Degradation {
  double loss = 0;      ///< share of packets lost at random, 0..1
  double rate_bps = 0;  ///< 0: the link's own
  bool operator==(const Degradation&) const = default;
};

/// Reads "1%" or "0.25%" as a share of 1. More than 0 and at most 100 %.
Result<double> parse_percent(std::string_view text);
/// A random 32-bit number below this one means loss.
[[nodiscard]] std::uint64_t loss_threshold(double loss);
/// The form in which a lab remembers it. Reading names `source` in its Error.
[[nodiscard]] std::string degradation_json(const Degradation& degradation);
Result<Degradation> read_degradation(std::string_view text, const std::string& source);

}  // namespace te::lab
