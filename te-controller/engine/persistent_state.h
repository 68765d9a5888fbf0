// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <map>
#include <optional>
#include <string>
#include <vector>

#include "te-controller/engine/options.h"
#include "te/v1/agent.pb.h"
#include "te/v1/api.pb.h"

namespace te {

/// What outlives the controller's process.
struct PersistentState {
  std::optional<Mode> mode;                         ///< absent: never stored
  std::optional<Mode> resume_mode;                  ///< what a pause goes back to
  std::map<std::string, v1::SteeringSet> steering;  ///< desired, by node
  std::vector<v1::MoveView> moves;                  ///< the ledger's newest, oldest first
  std::vector<v1::OverrideView> overrides;
};

/// What changed since the last time it was asked for. Newest wins.
struct PersistentChange {
  std::optional<Mode> mode;
  std::optional<Mode> resume_mode;
  std::map<std::string, v1::SteeringSet> steering;
  std::map<int, v1::MoveView> moves;                       ///< by number; the whole entry as it is now
  std::optional<std::vector<v1::OverrideView>> overrides;  ///< all there are
  [[nodiscard]] bool empty() const { return !mode && !resume_mode && steering.empty() && moves.empty() && !overrides; }
};

}  // namespace te
