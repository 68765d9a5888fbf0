// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <CLI/CLI.hpp>
#include <functional>
#include <string>

namespace te::lab {

/// Adds fail, restore, degrade and switch to `app`. The one that is given sets `action`, which returns the exit code.
void add_fault_commands(CLI::App& app, std::function<int()>& action);

}  // namespace te::lab
