// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>

namespace te::lab {

/// SplitMix64 (Steele, Lea, Flood 2014): a repeatable stream of numbers from a seed, the same on every machine.
class Mix {
 public:
  explicit Mix(std::uint64_t seed) : state_(seed) {}
  std::uint64_t next() {
    state_ += 0x9E3779B97F4A7C15ULL;
    std::uint64_t mixed = state_;
    mixed = (mixed ^ (mixed >> 30)) * 0xBF58476D1CE4E5B9ULL;
    mixed = (mixed ^ (mixed >> 27)) * 0x94D049BB133111EBULL;
    return mixed ^ (mixed >> 31);
  }
  /// 0 .. bound - 1; `bound` must not be 0.
  std::uint64_t below(std::uint64_t bound) { return next() % bound; }

 private:
  std::uint64_t state_;
};

}  // namespace te::lab
