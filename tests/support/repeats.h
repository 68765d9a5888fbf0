// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <algorithm>
#include <cstdint>

#if defined(__has_feature)
#if __has_feature(address_sanitizer)
#define TE_ADDRESS_SANITIZER
#endif
#endif

namespace te::testing {

/// How many of `count` random instances to look at: all, but one in eight (at least four) under AddressSanitizer, which
/// takes ten times as long and looks for other mistakes than a wrong figure.
constexpr std::uint64_t repeats(std::uint64_t count) {
#ifdef TE_ADDRESS_SANITIZER
  return std::max(std::min<std::uint64_t>(count, 4), count / 8);
#else
  return count;
#endif
}

}  // namespace te::testing
