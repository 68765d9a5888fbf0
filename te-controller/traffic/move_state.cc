// SPDX-License-Identifier: Apache-2.0
#include "te-controller/traffic/move_state.h"

namespace te::traffic {
namespace {

constexpr std::array kStates{MoveState::kProposed,   MoveState::kSent,   MoveState::kProgrammed, MoveState::kVerified,
                             MoveState::kRolledBack, MoveState::kFailed, MoveState::kSuperseded};

}  // namespace

std::string_view to_string(MoveState state) {
  switch (state) {
    case MoveState::kProposed:
      return "proposed";
    case MoveState::kSent:
      return "sent";
    case MoveState::kProgrammed:
      return "programmed";
    case MoveState::kVerified:
      return "verified";
    case MoveState::kRolledBack:
      return "rolled_back";
    case MoveState::kFailed:
      return "failed";
    case MoveState::kSuperseded:
      return "superseded";
  }
  return "?";
}

std::optional<MoveState> parse_move_state(std::string_view text) {
  for (const MoveState state : kStates) {
    if (to_string(state) == text) return state;
  }
  return std::nullopt;
}

}  // namespace te::traffic
