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

}  // namespace

Result<std::vector<NicPort>> read_nic_ports(std::span<const std::string> interfaces) {
  ifaddrs* raw = nullptr;
  if (::getifaddrs(&raw) != 0) return errno_error("list network interfaces");
  const std::unique_ptr<ifaddrs, decltype(&::freeifaddrs)> all(raw, &::freeifaddrs);
  const UniqueFd socket(::socket(AF_INET, SOCK_DGRAM | SOCK_CLOEXEC, 0));
  if (!socket) return errno_error("open a socket for interface settings");
  std::vector<NicPort> ports;
  for (const std::string& interface : interfaces) {
    NicPort port;
    port.interface = interface;
    port.ifindex = ::if_nametoindex(interface.c_str());
    port.mtu_bytes = mtu_of(socket.get(), interface);
    for (const ifaddrs* entry = all.get(); entry != nullptr; entry = entry->ifa_next) {
      if (entry->ifa_name != interface) continue;
      port.up = (entry->ifa_flags & IFF_UP) != 0 && (entry->ifa_flags & IFF_RUNNING) != 0;
      if (entry->ifa_addr == nullptr) continue;
      if (const auto address = address_of(entry->ifa_addr)) port.addresses.push_back(*address);
    }
    ports.push_back(std::move(port));
  }
  return ports;
}

}  // namespace te::agent
