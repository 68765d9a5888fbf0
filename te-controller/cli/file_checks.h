// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <string>

namespace te {

/// Checks of files that need no controller. Each writes what it found and returns an exit status.
int validate_topology(const std::string& path, bool json);
/// te-controller's configuration and all it names; 2 when something is wrong.
int check_controller_config(const std::string& path, bool json);

}  // namespace te
