// SPDX-License-Identifier: Apache-2.0
#include "host-agent/core/nic_port.h"

#include <algorithm>
#include <array>
#include <map>
#include <string_view>
#include <utility>

namespace te::agent {
namespace {

/// Kinds of interfaces whose packets all pass the one below. (A veth's "lower" one is its peer.)
constexpr std::array<std::string_view, 3> kStackedKinds{"vlan", "macvlan", "ipvlan"};
/// More than Linux stacks (MAX_NEST_DEV is 8).
constexpr int kMostLayers = 16;

using Links = std::map<std::uint32_t, const netlink::LinkMessage*>;

std::uint32_t below(const Links& links, std::uint32_t ifindex) {
  const auto found = links.find(ifindex);
  if (found == links.end()) return 0;
  return std::ranges::find(kStackedKinds, found->second->kind) == kStackedKinds.end() ? 0 : found->second->lower;
}

/// Of the interface and those below it, the lowest that is one of `ports`.
NicPort* carrier_of(const Links& links, std::uint32_t ifindex, const std::vector<NicPort*>& ports) {
  NicPort* lowest = nullptr;
  for (int layer = 0; ifindex != 0 && layer < kMostLayers; ++layer) {
    const auto here = std::ranges::find(ports, ifindex, &NicPort::ifindex);
    if (here != ports.end()) lowest = *here;
    ifindex = below(links, ifindex);
  }
  return lowest;
}

}  // namespace

void fill_ports(const std::string& netns, std::span<const netlink::LinkMessage> links,
                std::span<const NicAddress> addresses, std::span<NicPort> ports) {
  Links by_index;
  for (const netlink::LinkMessage& link : links) by_index[link.ifindex] = &link;
  std::vector<NicPort*> here;
  for (NicPort& port : ports) {
    if (port.name.netns != netns) continue;
    NicName name = std::move(port.name);
    port = NicPort();
    port.name = std::move(name);
    const auto found = std::ranges::find(links, port.name.interface, &netlink::LinkMessage::name);
    if (found == links.end()) continue;
    port.ifindex = found->ifindex;
    port.mtu_bytes = found->mtu_bytes;
    port.up = found->up && found->carrier;
    here.push_back(&port);
  }
  for (NicPort* port : here) {
    const NicPort* carrier = carrier_of(by_index, port->ifindex, here);
    if (carrier != port) port->sends_by = carrier->name.interface;
  }
  for (const NicAddress& address : addresses) {
    if (NicPort* port = carrier_of(by_index, address.ifindex, here)) port->addresses.push_back(address);
  }
}

}  // namespace te::agent
