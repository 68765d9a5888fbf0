// SPDX-License-Identifier: Apache-2.0
#include "tests/bpf/datapath/veth.h"

#include <arpa/inet.h>
#include <linux/if_ether.h>
#include <linux/if_packet.h>
#include <net/if.h>
#include <poll.h>
#include <sched.h>
#include <sys/socket.h>

#include <algorithm>
#include <cstdlib>
#include <cstring>

namespace te::agent {
namespace {

constexpr int kReceiveTimeoutMs = 1000;
constexpr std::size_t kMaxPacketBytes = 65536;

/// struct virtio_net_hdr of linux/virtio_net.h, which is no C++.
struct OffloadHeader {
  std::uint8_t flags = 0;
  std::uint8_t gso_type = 0;
  std::uint16_t header_bytes = 0;
  std::uint16_t gso_size = 0;
  std::uint16_t checksum_start = 0;
  std::uint16_t checksum_offset = 0;
};

UniqueFd packet_socket(std::uint32_t ifindex, bool with_offload_header) {
  UniqueFd fd(::socket(AF_PACKET, SOCK_RAW | SOCK_CLOEXEC, htons(ETH_P_ALL)));
  sockaddr_ll address{};
  address.sll_family = AF_PACKET;
  address.sll_protocol = htons(ETH_P_ALL);
  address.sll_ifindex = static_cast<int>(ifindex);
  const int yes = 1;
  if (with_offload_header && ::setsockopt(fd.get(), SOL_PACKET, PACKET_VNET_HDR, &yes, sizeof yes) != 0) return {};
  if (::bind(fd.get(), reinterpret_cast<const sockaddr*>(&address), sizeof address) != 0) return {};
  return fd;
}

}  // namespace

bool succeeds(const std::string& command) {
  return std::system(command.c_str()) == 0;  // NOLINT(bugprone-command-processor,cert-env33-c): fixed commands of tests
}

VethPair::VethPair() {
  if (::unshare(CLONE_NEWNET) != 0) return;
  const std::string near = kNear;
  const std::string far = kFar;
  // No IPv6 of their own: neighbour discovery would be traffic that the tests did not send.
  const bool made = succeeds("ip link add " + near + " mtu 12000 type veth peer name " + far + " mtu 12000") &&
                    succeeds("ip link set " + near + " addrgenmode none && ip link set " + far + " addrgenmode none") &&
                    succeeds("ip link set " + near + " up && ip link set " + far + " up");
  if (!made) return;
  near_ifindex_ = ::if_nametoindex(kNear);
  far_ifindex_ = ::if_nametoindex(kFar);
  near_socket_ = packet_socket(near_ifindex_, false);
  near_paged_socket_ = packet_socket(near_ifindex_, true);
  far_socket_ = packet_socket(far_ifindex_, false);
}

std::optional<Bytes> VethPair::receive() const {
  pollfd wait{.fd = far_socket_.get(), .events = POLLIN, .revents = 0};
  if (::poll(&wait, 1, kReceiveTimeoutMs) != 1) return std::nullopt;
  Bytes frame(kMaxPacketBytes);
  const auto size = ::recv(far_socket_.get(), frame.data(), frame.size(), 0);
  if (size < 0) return std::nullopt;
  frame.resize(static_cast<std::size_t>(size));
  return frame;
}

std::optional<Bytes> VethPair::pass(const Bytes& frame) const {
  if (::send(near_socket_.get(), frame.data(), frame.size(), 0) != static_cast<ssize_t>(frame.size()))
    return std::nullopt;
  return receive();
}

std::optional<Bytes> VethPair::pass_paged(const Bytes& frame, std::uint16_t linear_bytes) const {
  OffloadHeader offload;
  offload.header_bytes = linear_bytes;
  Bytes buffer(sizeof offload);
  std::memcpy(buffer.data(), &offload, sizeof offload);
  buffer.insert(buffer.end(), frame.begin(), frame.end());
  const auto size = static_cast<ssize_t>(buffer.size());
  if (::send(near_paged_socket_.get(), buffer.data(), buffer.size(), 0) != size) return std::nullopt;
  return receive();
}

}  // namespace te::agent
