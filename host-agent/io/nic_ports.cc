// SPDX-License-Identifier: Apache-2.0
#include "host-agent/io/nic_ports.h"

#include <ifaddrs.h>
#include <net/if.h>
#include <netinet/in.h>
#include <sys/socket.h>

#include <array>
#include <cstring>
#include <memory>
#include <optional>
#include <set>
#include <string>

#include "common/netlink/link_socket.h"
#include "common/os/file.h"

namespace te::agent {
namespace {

std::optional<IpAddress> address_of(const sockaddr* socket_address) {
  if (socket_address == nullptr) return std::nullopt;
  if (socket_address->sa_family == AF_INET) {
    sockaddr_in v4{};
    std::memcpy(&v4, socket_address, sizeof(v4));
    std::array<std::uint8_t, 4> bytes{};
    std::memcpy(bytes.data(), &v4.sin_addr, bytes.size());
    return IpAddress::v4(bytes);
  }
  if (socket_address->sa_family == AF_INET6) {
    sockaddr_in6 v6{};
    std::memcpy(&v6, socket_address, sizeof(v6));
    if (IN6_IS_ADDR_LINKLOCAL(&v6.sin6_addr)) return std::nullopt;
    std::array<std::uint8_t, 16> bytes{};
    std::memcpy(bytes.data(), &v6.sin6_addr, bytes.size());
    return IpAddress::v6(bytes);
  }
  return std::nullopt;
}

struct FreeAddresses {
  void operator()(ifaddrs* all) const { ::freeifaddrs(all); }
};

/// "eth0:storage" names an address of eth0.
std::string interface_of(const char* label) {
  std::string name(label);
  return name.substr(0, name.find(':'));
}

Result<std::vector<NicAddress>> read_addresses() {
  ifaddrs* raw = nullptr;
  if (::getifaddrs(&raw) != 0) return errno_error("list the addresses of network interfaces");
  const std::unique_ptr<ifaddrs, FreeAddresses> all(raw);
  std::vector<NicAddress> addresses;
  for (const ifaddrs* entry = all.get(); entry != nullptr; entry = entry->ifa_next) {
    const auto address = address_of(entry->ifa_addr);
    if (address) addresses.push_back({*address, ::if_nametoindex(interface_of(entry->ifa_name).c_str())});
  }
  return addresses;
}

/// In the calling thread's namespace, which is `netns`.
Result<void> read_here(const std::string& netns, std::span<NicPort> ports) {
  const auto links = netlink::read_links();
  if (!links) return links.error();
  const auto addresses = read_addresses();
  if (!addresses) return addresses.error();
  fill_ports(netns, *links, *addresses, ports);
  return {};
}

}  // namespace

std::vector<NicPort> ports_of(std::span<const NicName> nics) {
  std::vector<NicPort> ports;
  for (const NicName& nic : nics) ports.emplace_back().name = nic;
  return ports;
}

Result<void> read_nic_ports(std::span<NicPort> ports, NetNamespaces& namespaces) {
  std::set<std::string> places;
  for (const NicPort& port : ports) places.insert(port.name.netns);
  Result<void> outcome;
  for (const std::string& netns : places) {
    Result<void> read;
    // What kept the agent from being there is told when it attaches.
    if (!namespaces.run_in(netns, [&] { read = read_here(netns, ports); })) fill_ports(netns, {}, {}, ports);
    if (!read && outcome) outcome = netns.empty() ? std::move(read) : with_context(std::move(read).error(), netns);
  }
  return outcome;
}

}  // namespace te::agent
