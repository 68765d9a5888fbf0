// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <string>

#include "common/base/result.h"
#include "common/netlink/attributes.h"

namespace te::netlink {

/// Totals since the interface was made (struct rtnl_link_stats64).
struct LinkCounters {
  std::uint64_t received_packets = 0;
  std::uint64_t sent_packets = 0;
  std::uint64_t received_bytes = 0;
  std::uint64_t sent_bytes = 0;
  std::uint64_t received_errors = 0;
  std::uint64_t sent_errors = 0;
  std::uint64_t received_drops = 0;
  std::uint64_t sent_drops = 0;
  bool operator==(const LinkCounters&) const = default;
};

/// One network interface, as a RTM_NEWLINK message tells it.
struct LinkMessage {
  std::uint32_t ifindex = 0;
  std::string name;
  bool up = false;           ///< administratively
  bool carrier = false;      ///< the other end is there
  bool operational = false;  ///< RFC 2863 operational state "up": the kernel has acted on the carrier
  std::uint32_t mtu_bytes = 0;
  std::uint32_t carrier_changes = 0;  ///< since the interface was made
  std::uint32_t master = 0;           ///< ifindex of the bond or bridge it belongs to; 0: none
  std::uint32_t lower = 0;  ///< ifindex of the one below it (a VLAN's NIC, a veth's peer); 0: none in this namespace
  std::string kind;         ///< "bond", "vlan", "veth", ...; empty: a physical one
  LinkCounters counters;
  bool operator==(const LinkMessage&) const = default;
};

/// Reads what follows the netlink header of one RTM_NEWLINK message (struct ifinfomsg, then attributes).
Result<LinkMessage> parse_link_message(Bytes payload);

}  // namespace te::netlink
