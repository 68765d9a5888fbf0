// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <vector>

#include "host-agent/core/agent_config.h"
#include "te/v1/agent.pb.h"

namespace te::agent {

/// Finds out what this host can observe and do, without touching a running agent: programs are loaded into a scratch
/// directory of the bpffs and taken away again, nothing is attached, and no session is opened with a controller.
[[nodiscard]] std::vector<v1::Source> examine_host(const AgentConfig& config);

}  // namespace te::agent
