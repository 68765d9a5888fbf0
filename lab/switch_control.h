// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <string>
#include <utility>
#include <vector>

#include "common/base/result.h"
#include "lab/switch_mode.h"

namespace te::lab {

/// Lets a switch forward and answer in another way from now on.
Result<void> set_switch_mode(const std::string& id, const std::string& node, SwitchMode mode);
/// Switches whose mode is not normal, in the order of the fabric: name, mode.
Result<std::vector<std::pair<std::string, SwitchMode>>> read_switch_modes(const std::string& id, const Fabric& fabric);

}  // namespace te::lab
