// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>
#include <cstdint>
#include <string>
#include <unordered_map>

namespace te::traffic {

/// Leaves a QP alone for a while after a move, and longer after each roll-back in a row.
class CoolDown {
 public:
  static constexpr std::uint32_t kMostDoublings = 6;

  /// `period_ns` >= 0 after a move; doubled for each roll-back in a row, kMostDoublings times at most.
  explicit CoolDown(std::int64_t period_ns) : period_ns_(period_ns) {}

  void moved(const std::string& flow, std::int64_t now_ns);
  void rolled_back(const std::string& flow, std::int64_t now_ns);
  /// A verified move ends the row of roll-backs.
  void verified(const std::string& flow);
  /// Time left in ns; 0: may be moved.
  [[nodiscard]] std::int64_t left_ns(const std::string& flow, std::int64_t now_ns) const;
  /// Forgets flows whose time has been over for as long as the longest period.
  void prune(std::int64_t now_ns);
  [[nodiscard]] std::size_t size() const { return flows_.size(); }

 private:
  struct State {
    std::int64_t until_ns = 0;
    std::uint32_t roll_backs = 0;
  };
  void hold(State& state, std::int64_t now_ns) const;

  std::int64_t period_ns_;
  std::unordered_map<std::string, State> flows_;
};

}  // namespace te::traffic
