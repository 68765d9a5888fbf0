// SPDX-License-Identifier: Apache-2.0
#include "host-agent/io/nic_ports.h"

#include <ifaddrs.h>
#include <net/if.h>
#include <netinet/in.h>
#include <sys/ioctl.h>
#include <sys/socket.h>

#include <algorithm>
#include <array>
#include <cstring>
#include <memory>
#include <optional>
#include <set>
#include <string_view>

#include "common/os/file.h"
#include "common/os/unique_fd.h"

namespace te::agent {
namespace {

std::optional<IpAddress> address_of(const sockaddr* socket_address) {
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

std::uint32_t mtu_of(int socket, const std::string& interface) {
  ifreq request{};
  std::memcpy(request.ifr_name, interface.data(), std::min(interface.size(), sizeof(request.ifr_name) - 1));
  if (::ioctl(socket, SIOCGIFMTU, &request) != 0) return 0;
  return static_cast<std::uint32_t>(request.ifr_mtu);
}

struct FreeAddresses {
  void operator()(ifaddrs* all) const { ::freeifaddrs(all); }
};

void take_entry(const ifaddrs& entry, NicPort& port) {
  port.up = (entry.ifa_flags & IFF_UP) != 0 && (entry.ifa_flags & IFF_RUNNING) != 0;
  if (entry.ifa_addr == nullptr) return;
  if (const auto address = address_of(entry.ifa_addr)) port.addresses.push_back(*address);
}

/// Fills in those ports that are in `netns`, which is the calling thread's.
Result<void> read_here(const std::string& netns, std::vector<NicPort>& ports) {
  ifaddrs* raw = nullptr;
  if (::getifaddrs(&raw) != 0) return errno_error("list network interfaces");
  const std::unique_ptr<ifaddrs, FreeAddresses> all(raw);
  const UniqueFd socket(::socket(AF_INET, SOCK_DGRAM | SOCK_CLOEXEC, 0));
  if (!socket) return errno_error("open a socket for interface settings");
  for (NicPort& port : ports) {
    if (port.name.netns != netns) continue;
    port.ifindex = ::if_nametoindex(port.name.interface.c_str());
    port.mtu_bytes = mtu_of(socket.get(), port.name.interface);
    for (const ifaddrs* entry = all.get(); entry != nullptr; entry = entry->ifa_next) {
      if (entry->ifa_name == port.name.interface) take_entry(*entry, port);
    }
  }
  return {};
}

}  // namespace

Result<std::vector<NicPort>> read_nic_ports(std::span<const NicName> nics, NetNamespaces& namespaces) {
  std::vector<NicPort> ports;
  std::set<std::string> places;
  for (const NicName& nic : nics) {
    ports.emplace_back().name = nic;
    places.insert(nic.netns);
  }
  for (const std::string& netns : places) {
    Result<void> read;
    // What kept the agent from being there is told when it attaches.
    if (!namespaces.run_in(netns, [&] { read = read_here(netns, ports); })) continue;
    if (!read) return std::move(read).error();
  }
  return ports;
}

}  // namespace te::agent
