// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "common/base/result.h"
#include "host-agent/core/flow_sample.h"

namespace te::agent {

/// A steered flow of pinned maps.
struct PinnedSteering {
  FlowKey key;
  std::uint16_t port = 0;
};

/// The steered flows of the maps pinned in `directory`, of any ABI version: their own BTF says where the fields lie. An
/// Error when it does not name those that this needs. The kernel asks for CAP_SYS_ADMIN.
Result<std::vector<PinnedSteering>> read_pinned_steering(const std::string& directory);

}  // namespace te::agent
