// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <array>
#include <cstdint>
#include <optional>
#include <string_view>

namespace te::traffic {

/// A move in the ledger.
enum class MoveState : std::uint8_t { kProposed, kSent, kProgrammed, kVerified, kRolledBack, kFailed, kSuperseded };

enum class MoveEvent : std::uint8_t {
  kSend,       ///< given to the agent
  kProgram,    ///< the agent reports it in force
  kVerify,     ///< judged good
  kRollBack,   ///< judged worse and taken back
  kFail,       ///< the agent refused, or did not answer in time
  kSupersede,  ///< a newer decision, a pause or the end of the flow overtook it
};

struct MoveTransition {
  MoveState state;
  MoveEvent event;
  MoveState next;
};

/// All that may happen; anything else is refused. A verified move can still be rolled back (it got worse later).
inline constexpr std::array kMoveTransitions = std::to_array<MoveTransition>({
    {MoveState::kProposed, MoveEvent::kSend, MoveState::kSent},
    {MoveState::kProposed, MoveEvent::kSupersede, MoveState::kSuperseded},
    {MoveState::kSent, MoveEvent::kProgram, MoveState::kProgrammed},
    {MoveState::kSent, MoveEvent::kFail, MoveState::kFailed},
    {MoveState::kSent, MoveEvent::kRollBack, MoveState::kRolledBack},
    {MoveState::kSent, MoveEvent::kSupersede, MoveState::kSuperseded},
    {MoveState::kProgrammed, MoveEvent::kVerify, MoveState::kVerified},
    {MoveState::kProgrammed, MoveEvent::kRollBack, MoveState::kRolledBack},
    {MoveState::kProgrammed, MoveEvent::kFail, MoveState::kFailed},
    {MoveState::kProgrammed, MoveEvent::kSupersede, MoveState::kSuperseded},
    {MoveState::kVerified, MoveEvent::kRollBack, MoveState::kRolledBack},
    {MoveState::kVerified, MoveEvent::kSupersede, MoveState::kSuperseded},
});

/// The state after `event`; nothing when it may not happen in `state`.
[[nodiscard]] constexpr std::optional<MoveState> next_state(MoveState state, MoveEvent event) {
  for (const MoveTransition& row : kMoveTransitions) {
    if (row.state == state && row.event == event) return row.next;
  }
  return std::nullopt;
}

/// True when no event is possible any more.
[[nodiscard]] constexpr bool is_final(MoveState state) {
  for (const MoveTransition& row : kMoveTransitions) {
    if (row.state == state) return false;
  }
  return true;
}

/// As the API writes it: "rolled_back".
[[nodiscard]] std::string_view to_string(MoveState state);
/// The reverse of to_string; nothing for other text.
[[nodiscard]] std::optional<MoveState> parse_move_state(std::string_view text);

}  // namespace te::traffic
