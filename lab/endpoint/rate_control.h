// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <algorithm>
#include <cstdint>

namespace te::lab {

/// Sending rate of one QP: cut on a congestion notification, back up in steps. A plain cousin of DCQCN's reaction point
/// (Zhu et al., SIGCOMM 2015): one multiplicative cut a period, additive recovery.
class RateControl {
 public:
  explicit RateControl(double link_bps) : link_bps_(link_bps), rate_bps_(link_bps) {}

  void on_notification(std::int64_t now_ns) {
    recover(now_ns);
    if (now_ns < next_cut_ns_) return;
    rate_bps_ = std::max(rate_bps_ * kCut, link_bps_ * kLeastShare);
    next_cut_ns_ = now_ns + kPeriodNs;
    next_step_ns_ = now_ns + kPeriodNs;
  }
  /// Bits a second, of bytes as the link counts them.
  double rate_bps(std::int64_t now_ns) {
    recover(now_ns);
    return rate_bps_;
  }
  [[nodiscard]] bool is_limited() const { return rate_bps_ < link_bps_; }

 private:
  static constexpr double kCut = 0.85;
  static constexpr double kLeastShare = 0.01;
  static constexpr double kStepShare = 0.01;  ///< of the link, each period: from a third to a half in 170 ms
  static constexpr std::int64_t kPeriodNs = 10'000'000;

  void recover(std::int64_t now_ns) {
    if (!is_limited() || now_ns < next_step_ns_) return;
    const std::int64_t steps = 1 + (now_ns - next_step_ns_) / kPeriodNs;
    rate_bps_ = std::min(link_bps_, rate_bps_ + static_cast<double>(steps) * kStepShare * link_bps_);
    next_step_ns_ += steps * kPeriodNs;
  }

  double link_bps_;
  double rate_bps_;
  std::int64_t next_cut_ns_ = 0;
  std::int64_t next_step_ns_ = 0;
};

}  // namespace te::lab
