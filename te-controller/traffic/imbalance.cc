// SPDX-License-Identifier: Apache-2.0
#include "te-controller/traffic/imbalance.h"

#include <algorithm>
#include <cmath>
#include <map>

namespace te::traffic {
namespace {

Spread spread_of(const std::vector<double>& values) {
  if (values.empty()) return {};
  Spread spread{.least = values.front(), .mean = 0, .most = values.front(), .variation = 0};
  for (const double value : values) {
    spread.least = std::min(spread.least, value);
    spread.most = std::max(spread.most, value);
    spread.mean += value / static_cast<double>(values.size());
  }
  double variance = 0;
  for (const double value : values) {
    variance += (value - spread.mean) * (value - spread.mean) / static_cast<double>(values.size());
  }
  if (spread.mean > 0) spread.variation = std::sqrt(variance) / spread.mean;
  return spread;
}

}  // namespace

std::vector<TierUse> imbalance(std::span<const LinkUse> links) {
  struct Members {
    TierUse use;
    std::vector<double> utilisation;
    std::vector<double> flows;
  };
  std::map<std::uint32_t, Members> tiers;
  for (std::size_t i = 0; i < links.size(); ++i) {
    const LinkUse& link = links[i];
    Members& tier = tiers[link.tier];
    if (!link.takes_flows) {
      ++tier.use.closed;
      continue;
    }
    if (tier.use.links++ == 0 || link.utilisation > links[tier.use.fullest].utilisation) tier.use.fullest = i;
    tier.utilisation.push_back(link.utilisation);
    tier.flows.push_back(link.flows);
  }
  std::vector<TierUse> uses;
  for (auto& [number, tier] : tiers) {
    tier.use.tier = number;
    tier.use.utilisation = spread_of(tier.utilisation);
    tier.use.flows = spread_of(tier.flows);
    uses.push_back(tier.use);
  }
  return uses;
}

double lost_share(double now_bps, double ideal_bps) {
  return ideal_bps > 0 ? std::clamp(1 - now_bps / ideal_bps, 0.0, 1.0) : 0;
}

}  // namespace te::traffic
