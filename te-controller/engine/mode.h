// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <optional>
#include <string_view>

#include "te-controller/engine/options.h"

namespace te {

/// "observe", "act" or "paused".
[[nodiscard]] constexpr std::string_view to_string(Mode mode) {
  switch (mode) {
    case Mode::kObserve:
      return "observe";
    case Mode::kAct:
      return "act";
    case Mode::kPaused:
      return "paused";
  }
  return "observe";
}

[[nodiscard]] constexpr std::optional<Mode> parse_mode(std::string_view text) {
  for (const Mode mode : {Mode::kObserve, Mode::kAct, Mode::kPaused}) {
    if (text == to_string(mode)) return mode;
  }
  return std::nullopt;
}

}  // namespace te
