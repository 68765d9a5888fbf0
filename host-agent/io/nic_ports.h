// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <span>
#include <string>
#include <vector>

#include "common/base/ip_address.h"
#include "common/base/result.h"

namespace te::agent {

/// A network interface of this namespace as it is now; `ifindex` 0: it does not exist.
struct NicPort {
  std::string interface;
  std::uint32_t ifindex = 0;
  std::vector<IpAddress> addresses;  ///< no link-local ones
  std::uint32_t mtu_bytes = 0;
  bool up = false;  ///< administratively up and with carrier
  bool operator==(const NicPort&) const = default;
};

/// The interfaces named, in that order.
Result<std::vector<NicPort>> read_nic_ports(std::span<const std::string> interfaces);

}  // namespace te::agent
