// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <span>
#include <string>
#include <vector>

#include "common/base/ip_address.h"
#include "common/base/result.h"
#include "host-agent/core/agent_config.h"
#include "host-agent/io/net_namespaces.h"

namespace te::agent {

/// A network interface as it is now; `ifindex` 0: it does not exist. An index is of its namespace only.
struct NicPort {
  NicName name;
  std::uint32_t ifindex = 0;
  std::vector<IpAddress> addresses;  ///< no link-local ones
  std::uint32_t mtu_bytes = 0;
  bool up = false;  ///< administratively up and with carrier
  bool operator==(const NicPort&) const = default;
};

/// The interfaces named, in that order. Those of a namespace that ended do not exist.
Result<std::vector<NicPort>> read_nic_ports(std::span<const NicName> nics, NetNamespaces& namespaces);

}  // namespace te::agent
