// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <span>

#include "common/base/result.h"
#include "host-agent/core/nic_port.h"
#include "host-agent/io/net_namespaces.h"

namespace te::agent {

/// The interfaces of a configuration, none looked at yet.
[[nodiscard]] std::vector<NicPort> ports_of(std::span<const NicName> nics);
/// Reads them again. Those of a namespace that ended, or was never entered, do not exist; those of one that cannot be
/// read stay as they were, and the Error says why.
Result<void> read_nic_ports(std::span<NicPort> ports, NetNamespaces& namespaces);

}  // namespace te::agent
