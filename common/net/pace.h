// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <algorithm>
#include <cstdint>

namespace te {

/// A rate that is kept on average, with a burst at first and after idling. Pure.
class Pace {
 public:
  /// `per_s` and `burst` are above 0.
  Pace(double per_s, double burst) : per_s_(per_s), burst_(burst), left_(burst) {}

  /// Takes `amount`, more than there is if need be; returns how many ns to wait before the next. 0: within the rate.
  std::int64_t take(double amount, std::int64_t now_ns) {
    refill(now_ns);
    left_ -= amount;
    return left_ >= 0 ? 0 : static_cast<std::int64_t>(-left_ / per_s_ * 1e9);
  }
  /// Takes `amount` only when it is there.
  bool try_take(double amount, std::int64_t now_ns) {
    refill(now_ns);
    if (left_ < amount) return false;
    left_ -= amount;
    return true;
  }
  /// Nothing was taken for so long that a new one would be the same.
  [[nodiscard]] bool is_full(std::int64_t now_ns) const {
    return left_ + static_cast<double>(now_ns - last_ns_) * 1e-9 * per_s_ >= burst_;
  }

 private:
  void refill(std::int64_t now_ns) {
    if (last_ns_ != 0) left_ = std::min(burst_, left_ + static_cast<double>(now_ns - last_ns_) * 1e-9 * per_s_);
    last_ns_ = now_ns;
  }

  double per_s_;
  double burst_;
  double left_;
  std::int64_t last_ns_ = 0;
};

}  // namespace te
