// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <string>
#include <string_view>

#include "common/base/result.h"

namespace te {

inline constexpr std::int64_t kNsPerMs = 1'000'000;
inline constexpr double kNsPerS = 1e9;

/// Reads a rate: a positive number with an optional suffix bit, kbit, mbit or gbit (powers of 1000). Returns bits/s.
Result<double> parse_rate_bps(std::string_view text);
/// Writes a rate for people, three significant digits: "49.3 Mbit/s".
std::string format_rate_bps(double rate_bps);
/// Writes a duration in seconds for people: "350 ms", "12.4 s", "3 min 20 s", "2 h 5 min".
std::string format_duration_s(double seconds);

}  // namespace te
