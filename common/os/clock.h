// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>

namespace te {

/// Nanoseconds of CLOCK_MONOTONIC: for intervals and ages. The time that pure code takes as an argument.
[[nodiscard]] std::int64_t monotonic_ns();
/// Microseconds since 1970-01-01 UTC: for people and ledgers only.
[[nodiscard]] std::int64_t wall_us();

}  // namespace te
