// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>

namespace te {

/// Times as the code under test takes them: nanoseconds of a clock that no test reads.
inline constexpr std::int64_t kMs = 1'000'000;
inline constexpr std::int64_t kSecond = 1000 * kMs;
inline constexpr std::int64_t kStart = 1000 * kSecond;  ///< a clock does not begin at zero

}  // namespace te
