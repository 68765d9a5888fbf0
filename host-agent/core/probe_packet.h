// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <vector>

#include "host-agent/core/probe_scheduler.h"

namespace te::agent {

/// The probe's bytes from the IP header on. It looks to switches as the flow's packets do (addresses, ports, flow
/// label, destination QPN). Its opcode is UD SEND-only: a connected queue pair drops it silently, should it ever get so
/// far (InfiniBand Architecture 1.3, 9.6.1.2). The token is the IP identification and the PSN.
[[nodiscard]] std::vector<std::uint8_t> probe_packet(const Probe& probe);

}  // namespace te::agent
