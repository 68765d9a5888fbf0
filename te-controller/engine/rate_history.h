// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <iterator>

namespace te {

/// Rates of one report interval, bits/s.
struct RateSample {
  std::int64_t begin_ns = 0;
  std::int64_t end_ns = 0;
  double rate_bps = 0;     ///< IP bits
  double payload_bps = 0;  ///< message data
};

/// The newest kMost samples, oldest first. Owns no memory: there is one for each flow and host.
class RateHistory {
 public:
  static constexpr std::size_t kMost = 16;

  class Iterator {
   public:
    using value_type = RateSample;
    using difference_type = std::ptrdiff_t;
    using iterator_category = std::forward_iterator_tag;
    Iterator() = default;
    Iterator(const RateHistory* of, std::size_t index) : of_(of), index_(index) {}
    const RateSample& operator*() const { return (*of_)[index_]; }
    const RateSample* operator->() const { return &(*of_)[index_]; }
    Iterator& operator++() {
      ++index_;
      return *this;
    }
    Iterator operator++(int) {
      const Iterator before = *this;
      ++index_;
      return before;
    }
    bool operator==(const Iterator&) const = default;

   private:
    const RateHistory* of_ = nullptr;
    std::size_t index_ = 0;
  };

  /// Drops the oldest when it is full.
  void push_back(const RateSample& sample) {
    samples_[(first_ + size_) % kMost] = sample;
    if (size_ < kMost) {
      ++size_;
    } else {
      first_ = static_cast<std::uint8_t>((first_ + 1) % kMost);
    }
  }
  [[nodiscard]] std::size_t size() const { return size_; }
  [[nodiscard]] bool empty() const { return size_ == 0; }
  [[nodiscard]] const RateSample& operator[](std::size_t i) const { return samples_[(first_ + i) % kMost]; }
  [[nodiscard]] const RateSample& back() const { return (*this)[size_ - 1U]; }
  [[nodiscard]] Iterator begin() const { return {this, 0}; }
  [[nodiscard]] Iterator end() const { return {this, size_}; }

 private:
  std::uint8_t first_ = 0;
  std::uint8_t size_ = 0;
  std::array<RateSample, kMost> samples_;
};

}  // namespace te
