// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <string>

#include "common/base/result.h"
#include "lab/spec.h"

namespace te::lab {

/// Builds the fabric of `spec` (an empty id gets one) and its state directory; undoes what it did when it fails.
Result<std::string> bring_up(const Spec& spec);
/// Ends every process in the lab's namespaces and those te-lab noted, and removes namespaces, mounts and files.
/// Works on a lab that is half built, and on one that is half removed.
Result<void> take_down(const std::string& id);
/// Of a host whose NICs are in a namespace of their own: that one, or the one with its agent.
enum class Side : std::uint8_t { kFabric, kManagement };

/// Becomes `command` in the namespace of `node` ("mgmt": the management namespace). Returns only on failure.
Result<void> execute_in(const std::string& id, const std::string& node, Side side,
                        const std::vector<std::string>& command);

}  // namespace te::lab
