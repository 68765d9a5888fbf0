// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <algorithm>
#include <cstdint>

namespace te::agent {

/// Exponential back-off: each failure doubles the wait, up to a ceiling. What works for less than `proof_ns` before it
/// fails counts as no success.
class Backoff {
 public:
  Backoff(std::int64_t first_ns, std::int64_t most_ns, std::int64_t proof_ns = 0)
      : first_ns_(first_ns), most_ns_(most_ns), proof_ns_(proof_ns), next_ns_(first_ns) {}

  /// The wait after one more failure. `jitter` in [0, 1): takes up to half of it away, so that many hosts do not return
  /// in step.
  [[nodiscard]] std::int64_t failed(double jitter) {
    const std::int64_t wait_ns = next_ns_;
    next_ns_ = wait_ns > most_ns_ / 2 ? most_ns_ : wait_ns * 2;
    return wait_ns - static_cast<std::int64_t>(static_cast<double>(wait_ns) * 0.5 * std::clamp(jitter, 0.0, 1.0));
  }
  void succeeded(std::int64_t lasted_ns) {
    if (lasted_ns >= proof_ns_) next_ns_ = first_ns_;
  }

 private:
  std::int64_t first_ns_;
  std::int64_t most_ns_;
  std::int64_t proof_ns_;
  std::int64_t next_ns_;
};

}  // namespace te::agent
