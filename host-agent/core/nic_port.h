// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <span>
#include <string>
#include <vector>

#include "common/base/ip_address.h"
#include "common/netlink/link_message.h"
#include "host-agent/core/agent_config.h"

namespace te::agent {

/// An address of a NIC and the interface that has it: the NIC, or one stacked on it (a VLAN, a macvlan, an ipvlan).
struct NicAddress {
  IpAddress address;
  std::uint32_t ifindex = 0;
  bool operator==(const NicAddress&) const = default;
};

/// A network interface as it is now; `ifindex` 0: it does not exist. An index is of its namespace only.
struct NicPort {
  NicName name;
  std::uint32_t ifindex = 0;
  std::vector<NicAddress> addresses;  ///< no link-local ones
  std::uint32_t mtu_bytes = 0;
  bool up = false;       ///< administratively up and with carrier
  std::string sends_by;  ///< another NIC of the list that it is stacked on, which has its addresses; empty: none
  bool operator==(const NicPort&) const = default;
};

/// Fills in those `ports` that are in the namespace `netns`, of which `links` and `addresses` are all.
void fill_ports(const std::string& netns, std::span<const netlink::LinkMessage> links,
                std::span<const NicAddress> addresses, std::span<NicPort> ports);

}  // namespace te::agent
