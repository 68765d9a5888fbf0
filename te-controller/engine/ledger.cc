// SPDX-License-Identifier: Apache-2.0
#include "te-controller/engine/ledger.h"

#include <utility>

namespace te {

using traffic::MoveEvent;
using traffic::MoveState;

void Ledger::restore(const std::vector<v1::MoveView>& moves) {
  std::vector<int> open;
  for (const v1::MoveView& move : moves) {
    moves_[move.number()] = move;
    const auto state = traffic::parse_move_state(move.state());
    if (state == MoveState::kRolledBack) ++rolled_back_;
    if (state == MoveState::kProposed || state == MoveState::kSent || state == MoveState::kProgrammed) {
      open.push_back(move.number());
    }
  }
  next_number_ = total() + 1;
  for (const int number : open) apply(number, MoveEvent::kSupersede, "te-controller restarted before it was judged");
}

int Ledger::add(v1::MoveView move) {
  const int number = next_number_++;
  move.set_number(number);
  move.set_state(std::string(traffic::to_string(MoveState::kProposed)));
  changed_[number] = move;
  moves_[number] = std::move(move);
  if (moves_.size() > kKept) moves_.erase(moves_.begin());
  return number;
}

void Ledger::apply(int number, MoveEvent event, const std::string& outcome) {
  const auto found = moves_.find(number);
  if (found == moves_.end()) return;
  v1::MoveView& move = found->second;
  const auto now = traffic::parse_move_state(move.state());
  const auto next = now ? traffic::next_state(*now, event) : std::nullopt;
  if (!next) return;
  move.set_state(std::string(traffic::to_string(*next)));
  if (!outcome.empty()) move.set_outcome(outcome);
  if (*next == MoveState::kRolledBack) ++rolled_back_;
  changed_[number] = move;
}

void Ledger::programmed(int number, std::int64_t after_ns) {
  const auto found = moves_.find(number);
  if (found == moves_.end()) return;
  found->second.set_programmed_ms(static_cast<double>(after_ns) * 1e-6);
  apply(number, MoveEvent::kProgram, "");
}

const v1::MoveView* Ledger::find(int number) const {
  const auto found = moves_.find(number);
  return found == moves_.end() ? nullptr : &found->second;
}

std::map<int, v1::MoveView> Ledger::take_changes() { return std::exchange(changed_, {}); }

}  // namespace te
