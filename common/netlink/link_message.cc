// SPDX-License-Identifier: Apache-2.0
#include "common/netlink/link_message.h"

#include <linux/if.h>
#include <linux/if_link.h>
#include <linux/rtnetlink.h>

#include <utility>

namespace te::netlink {
namespace {

Result<void> read_counters(Bytes payload, LinkCounters& into) {
  rtnl_link_stats64 raw{};
  // Kernels append fields: an older one sends fewer, a newer one more.
  constexpr std::size_t kNeeded = offsetof(rtnl_link_stats64, multicast);
  if (payload.size() < kNeeded) return Error{"IFLA_STATS64 has " + std::to_string(payload.size()) + " bytes"};
  std::memcpy(&raw, payload.data(), kNeeded);
  into = {raw.rx_packets, raw.tx_packets, raw.rx_bytes,   raw.tx_bytes,
          raw.rx_errors,  raw.tx_errors,  raw.rx_dropped, raw.tx_dropped};
  return {};
}

Result<void> read_kind(Bytes payload, std::string& into) {
  return for_each_attribute(payload, [&](std::uint16_t type, Bytes value) -> Result<void> {
    if (type == IFLA_INFO_KIND) into = text_of(value);
    return {};
  });
}

Result<void> read_attribute(std::uint16_t type, Bytes payload, LinkMessage& link) {
  switch (type) {
    case IFLA_IFNAME:
      link.name = text_of(payload);
      return {};
    case IFLA_MTU:
      return store(link.mtu_bytes, payload, "IFLA_MTU");
    case IFLA_MASTER:
      return store(link.master, payload, "IFLA_MASTER");
    case IFLA_LINK:
      return store(link.lower, payload, "IFLA_LINK");
    case IFLA_CARRIER_CHANGES:
      return store(link.carrier_changes, payload, "IFLA_CARRIER_CHANGES");
    case IFLA_CARRIER: {
      const auto carrier = number_of<std::uint8_t>(payload, "IFLA_CARRIER");
      if (!carrier) return carrier.error();
      link.carrier = *carrier != 0;
      return {};
    }
    case IFLA_OPERSTATE: {
      const auto state = number_of<std::uint8_t>(payload, "IFLA_OPERSTATE");
      if (!state) return state.error();
      link.operational = *state == IF_OPER_UP;
      return {};
    }
    case IFLA_LINKINFO:
      return read_kind(payload, link.kind);
    case IFLA_STATS64:
      return read_counters(payload, link.counters);
    default:
      return {};
  }
}

}  // namespace

Result<LinkMessage> parse_link_message(Bytes payload) {
  ifinfomsg header{};
  if (payload.size() < sizeof(header)) {
    return Error{"a link message of " + std::to_string(payload.size()) + " bytes, at least " +
                 std::to_string(sizeof(header)) + " expected"};
  }
  std::memcpy(&header, payload.data(), sizeof(header));
  LinkMessage link;
  link.ifindex = static_cast<std::uint32_t>(header.ifi_index);
  link.up = (header.ifi_flags & IFF_UP) != 0;
  bool lower_is_elsewhere = false;
  auto read = for_each_attribute(payload.subspan(sizeof(header)), [&](std::uint16_t type, Bytes value) {
    lower_is_elsewhere |= type == IFLA_LINK_NETNSID;
    return read_attribute(type, value, link);
  });
  if (lower_is_elsewhere) link.lower = 0;
  if (!read) return with_context(std::move(read).error(), "link message");
  if (header.ifi_index <= 0 || link.name.empty()) return Error{"a link message without index or name"};
  return link;
}

}  // namespace te::netlink
