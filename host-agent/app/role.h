// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>

#include "host-agent/io/credentials.h"
#include "host-agent/io/link_watcher.h"
#include "host-agent/io/metrics.h"
#include "host-agent/io/uplink.h"

namespace te::agent {

// What the agent does in both roles, host and switch.

inline constexpr std::uint32_t kProtocolVersion = 1;

/// A number that tells this run of the agent from others.
[[nodiscard]] std::uint64_t random_instance();

void add_figures(const Uplink& uplink, AgentFigures& figures);
void add_figures(const LinkWatcher& links, AgentFigures& figures);
void add_figures(const Credentials& credentials, AgentFigures& figures);

}  // namespace te::agent
