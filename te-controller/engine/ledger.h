// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <map>
#include <string>
#include <vector>

#include "te-controller/traffic/move_state.h"
#include "te/v1/api.pb.h"

namespace te {

/// Every decision to move a flow, with its reason and what became of it. The newest are kept here, all of them in the
/// store. Pure.
class Ledger {
 public:
  static constexpr std::size_t kKept = 2000;

  /// Moves of an earlier run, oldest first; those that were under way are superseded.
  void restore(const std::vector<v1::MoveView>& moves);
  /// Adds a move in state "proposed"; gives it its number, from 1.
  int add(v1::MoveView move);
  /// Moves it through its states; an event that may not happen there changes nothing. `outcome` replaces the old one
  /// when it is not empty.
  void apply(int number, traffic::MoveEvent event, const std::string& outcome);

  /// The agent has it in force, `after_ns` from the decision.
  void programmed(int number, std::int64_t after_ns);

  /// Null when it is not kept any more.
  [[nodiscard]] const v1::MoveView* find(int number) const;
  /// By number.
  [[nodiscard]] const std::map<int, v1::MoveView>& moves() const { return moves_; }
  /// Moves ever made, and of these rolled back, since the first run.
  [[nodiscard]] int total() const { return moves_.empty() ? 0 : moves_.rbegin()->first; }
  [[nodiscard]] int rolled_back() const { return rolled_back_; }
  /// To store, changed since the last call.
  std::map<int, v1::MoveView> take_changes();

 private:
  std::map<int, v1::MoveView> moves_;
  std::map<int, v1::MoveView> changed_;
  int next_number_ = 1;
  int rolled_back_ = 0;
};

}  // namespace te
