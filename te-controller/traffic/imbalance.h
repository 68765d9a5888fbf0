// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <vector>

namespace te::traffic {

/// One link, one direction, and what is on it.
struct LinkUse {
  std::uint32_t tier = 0;   ///< links that serve alike; any numbers
  bool takes_flows = true;  ///< false: down or drained, and not part of any spread
  double utilisation = 0;   ///< load / capacity, 0 or more
  std::uint32_t flows = 0;  ///< elastic ones
};

struct Spread {
  double least = 0;
  double mean = 0;
  double most = 0;
  double variation = 0;  ///< coefficient of variation: standard deviation (of all, not of a sample) / mean; mean 0: 0
};

/// How evenly the links of one tier are used.
struct TierUse {
  std::uint32_t tier = 0;
  std::size_t links = 0;   ///< that take flows; 0: the spreads say nothing
  std::size_t closed = 0;  ///< that take none
  Spread utilisation;
  Spread flows;
  std::size_t fullest = 0;  ///< index of the link with the highest utilisation (first of equals)
};

/// By tier, ascending. An even tier has variations of 0; hashing n flows onto m links gives flows a variation of about
/// sqrt(m / n) (Poisson). Pure.
[[nodiscard]] std::vector<TierUse> imbalance(std::span<const LinkUse> links);

/// Share of what the slowest flow could have that it does not get, 0 to 1: 1 - now / ideal. Ideal 0 (no flows): 0.
[[nodiscard]] double lost_share(double now_bps, double ideal_bps);

}  // namespace te::traffic
