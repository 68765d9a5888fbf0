// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <algorithm>
#include <cstdint>
#include <map>
#include <span>

#include "topology/fabric.h"

namespace te {

/// What one probe may cost each switch that could answer it: of n candidates each pays 1/n.
struct SwitchCost {
  NodeId node = kNoId;
  double answers = 0;
};

/// A token bucket of probe answers for each switch.
class SwitchBudget {
 public:
  /// `answers_per_s` > 0; a bucket holds a quarter of a second, at least kLeastBurst answers.
  explicit SwitchBudget(double answers_per_s)
      : answers_per_s_(answers_per_s), burst_(std::max(kLeastBurst, answers_per_s / 4)) {}

  /// Takes the costs and returns true when every switch has its share (or is at rest, for a cost above its burst).
  bool take(std::span<const SwitchCost> costs, std::int64_t now_ns) {
    for (const SwitchCost& cost : costs) {
      if (tokens(cost.node, now_ns) < std::min(cost.answers, burst_)) return false;
    }
    charge(costs, now_ns);
    return true;
  }
  /// Takes the costs whatever is left: retries that happened already.
  void charge(std::span<const SwitchCost> costs, std::int64_t now_ns) {
    for (const SwitchCost& cost : costs) tokens(cost.node, now_ns) -= cost.answers;
  }
  [[nodiscard]] double left(NodeId node, std::int64_t now_ns) { return tokens(node, now_ns); }
  [[nodiscard]] double answers_per_s() const { return answers_per_s_; }

 private:
  static constexpr double kLeastBurst = 8;
  struct Bucket {
    double tokens = 0;
    std::int64_t filled_ns = 0;
  };

  double& tokens(NodeId node, std::int64_t now_ns) {
    const auto [place, made] = buckets_.try_emplace(node, Bucket{.tokens = burst_, .filled_ns = now_ns});
    Bucket& bucket = place->second;
    const double gained = static_cast<double>(now_ns - bucket.filled_ns) * 1e-9 * answers_per_s_;
    bucket.tokens = std::min(burst_, bucket.tokens + gained);
    bucket.filled_ns = now_ns;
    return bucket.tokens;
  }

  double answers_per_s_;
  double burst_;
  std::map<NodeId, Bucket> buckets_;
};

}  // namespace te
