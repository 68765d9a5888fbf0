// SPDX-License-Identifier: Apache-2.0
#include "lab/endpoint/sockets.h"

#include <arpa/inet.h>
#include <linux/filter.h>
#include <linux/if_ether.h>
#include <linux/if_packet.h>
#include <net/if.h>
#include <netinet/in.h>
#include <sys/socket.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <cstring>

#include "common/os/file.h"
#include "common/os/unique_fd.h"
#include "common/roce/source_port.h"

namespace te::lab {
namespace {

constexpr std::size_t kBatch = 32;
constexpr std::size_t kMaxPacketBytes = 9216;
constexpr int kBufferBytes = 32 << 20;

sock_filter statement(int code, std::uint32_t value) { return {static_cast<std::uint16_t>(code), 0, 0, value}; }

/// Goes on when the accumulator equals `value`; otherwise jumps to the refusal `to_refusal` instructions further.
sock_filter require(std::uint32_t value, std::size_t to_refusal) {
  return {BPF_JMP | BPF_JEQ | BPF_K, 0, static_cast<std::uint8_t>(to_refusal), value};
}

/// Takes UDP packets for port 4791 of `address` that came from outside.
std::vector<sock_filter> packet_filter(const IpAddress& address) {
  struct Field {
    int load;
    std::uint32_t offset;
    std::uint32_t value;
  };
  const bool v6 = address.is_v6();
  std::vector<Field> fields{
      {BPF_LD | BPF_B | BPF_ABS, static_cast<std::uint32_t>(SKF_AD_OFF + SKF_AD_PKTTYPE), PACKET_HOST}};
  if (!v6) fields.push_back({BPF_LD | BPF_B | BPF_ABS, 0, 0x45});
  fields.push_back({BPF_LD | BPF_B | BPF_ABS, v6 ? 6U : 9U, IPPROTO_UDP});
  fields.push_back({BPF_LD | BPF_H | BPF_ABS, v6 ? 42U : 22U, roce::kUdpPort});
  const auto bytes = address.bytes();
  for (std::size_t at = 0; at < bytes.size(); at += 4) {
    std::uint32_t word = 0;
    std::memcpy(&word, bytes.data() + at, sizeof word);
    fields.push_back({BPF_LD | BPF_W | BPF_ABS, (v6 ? 24U : 16U) + static_cast<std::uint32_t>(at), ntohl(word)});
  }
  std::vector<sock_filter> program;
  for (std::size_t number = 0; number < fields.size(); ++number) {
    program.push_back(statement(fields[number].load, fields[number].offset));
    program.push_back(require(fields[number].value, 2 * (fields.size() - number - 1) + 1));
  }
  program.push_back(statement(BPF_RET | BPF_K, UINT32_MAX));
  program.push_back(statement(BPF_RET | BPF_K, 0));
  return program;
}

Result<void> set_filter(int fd, std::vector<sock_filter> program) {
  const sock_fprog description{static_cast<unsigned short>(program.size()), program.data()};
  if (::setsockopt(fd, SOL_SOCKET, SO_ATTACH_FILTER, &description, sizeof description) != 0) {
    return errno_error("attach a packet filter");
  }
  return {};
}

Result<UniqueFd> open_receiver(const std::string& interface, const IpAddress& address) {
  // Protocol 0: nothing arrives before the filter is there.
  UniqueFd fd(::socket(AF_PACKET, SOCK_DGRAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0));
  if (!fd) return errno_error("open a packet socket");
  auto filtered = set_filter(fd.get(), packet_filter(address));
  if (!filtered) return filtered.error();
  (void)::setsockopt(fd.get(), SOL_SOCKET, SO_RCVBUFFORCE, &kBufferBytes, sizeof kBufferBytes);
  sockaddr_ll where{};
  where.sll_family = AF_PACKET;
  where.sll_protocol = htons(address.is_v6() ? ETH_P_IPV6 : ETH_P_IP);
  where.sll_ifindex = static_cast<int>(::if_nametoindex(interface.c_str()));
  if (where.sll_ifindex == 0 || ::bind(fd.get(), reinterpret_cast<const sockaddr*>(&where), sizeof where) != 0) {
    return errno_error("bind a packet socket to " + interface);
  }
  return fd;
}

socklen_t fill_address(const IpAddress& address, sockaddr_storage& out, std::uint16_t port = 0) {
  std::memset(&out, 0, sizeof out);
  const auto bytes = address.bytes();
  if (address.is_v6()) {
    auto* v6 = reinterpret_cast<sockaddr_in6*>(&out);
    v6->sin6_family = AF_INET6;
    v6->sin6_port = htons(port);
    std::memcpy(&v6->sin6_addr, bytes.data(), bytes.size());
    return sizeof *v6;
  }
  auto* v4 = reinterpret_cast<sockaddr_in*>(&out);
  v4->sin_family = AF_INET;
  v4->sin_port = htons(port);
  std::memcpy(&v4->sin_addr, bytes.data(), bytes.size());
  return sizeof *v4;
}

int bind_to(int fd, const IpAddress& address, std::uint16_t port) {
  sockaddr_storage where{};
  const socklen_t size = fill_address(address, where, port);
  return ::bind(fd, reinterpret_cast<const sockaddr*>(&where), size);
}

Result<UniqueFd> open_sender(const IpAddress& address) {
  const bool v6 = address.is_v6();
  UniqueFd fd(::socket(v6 ? AF_INET6 : AF_INET, SOCK_RAW | SOCK_CLOEXEC | SOCK_NONBLOCK, IPPROTO_RAW));
  if (!fd) return errno_error("open a raw socket");
  const int on = 1;
  const int set = v6 ? ::setsockopt(fd.get(), IPPROTO_IPV6, IPV6_HDRINCL, &on, sizeof on)
                     : ::setsockopt(fd.get(), IPPROTO_IP, IP_HDRINCL, &on, sizeof on);
  if (set != 0) return errno_error("set a raw socket to whole packets");
  // The packets carry their source address, but routing by source looks at the socket's.
  if (bind_to(fd.get(), address, 0) != 0) return errno_error("bind a raw socket to " + address.to_string());
  (void)::setsockopt(fd.get(), SOL_SOCKET, SO_SNDBUFFORCE, &kBufferBytes, sizeof kBufferBytes);
  return fd;
}

/// Owns UDP port 4791 of an address and takes nothing, so that the kernel answers no packet with "port unreachable".
Result<UniqueFd> open_port_owner(const IpAddress& address) {
  UniqueFd fd(::socket(address.is_v6() ? AF_INET6 : AF_INET, SOCK_DGRAM | SOCK_CLOEXEC, 0));
  if (!fd) return errno_error("open a UDP socket");
  auto filtered = set_filter(fd.get(), {statement(BPF_RET | BPF_K, 0)});
  if (!filtered) return filtered.error();
  const int bound = bind_to(fd.get(), address, roce::kUdpPort);
  if (bound != 0) return errno_error("bind UDP port 4791 (is another endpoint running in this namespace?)");
  return fd;
}

}  // namespace

struct NicSockets::State {
  UniqueFd receiver;
  UniqueFd sender;
  UniqueFd port_owner;
  std::vector<std::uint8_t> buffer = std::vector<std::uint8_t>(kBatch * kMaxPacketBytes);
  std::uint64_t drops = 0;
};

NicSockets::NicSockets(std::unique_ptr<State> state) : state_(std::move(state)) {}
NicSockets::NicSockets(NicSockets&&) noexcept = default;
NicSockets& NicSockets::operator=(NicSockets&&) noexcept = default;
NicSockets::~NicSockets() = default;

Result<NicSockets> NicSockets::open(const std::string& interface, const IpAddress& address) {
  auto state = std::make_unique<State>();
  auto port_owner = open_port_owner(address);
  if (!port_owner) return std::move(port_owner).error();
  auto receiver = open_receiver(interface, address);
  if (!receiver) return std::move(receiver).error();
  auto sender = open_sender(address);
  if (!sender) return std::move(sender).error();
  state->port_owner = std::move(*port_owner);
  state->receiver = std::move(*receiver);
  state->sender = std::move(*sender);
  return NicSockets(std::move(state));
}

void NicSockets::receive(std::size_t limit, const std::function<void(std::span<const std::uint8_t>)>& take) {
  std::array<mmsghdr, kBatch> messages{};
  std::array<iovec, kBatch> slots{};
  for (std::size_t at = 0; at < kBatch; ++at) {
    slots[at] = {state_->buffer.data() + at * kMaxPacketBytes, kMaxPacketBytes};
    messages[at].msg_hdr.msg_iov = &slots[at];
    messages[at].msg_hdr.msg_iovlen = 1;
  }
  std::size_t taken = 0;
  while (taken < limit) {
    const int got = ::recvmmsg(state_->receiver.get(), messages.data(), kBatch, MSG_DONTWAIT, nullptr);
    if (got <= 0) return;
    for (std::size_t at = 0; at < static_cast<std::size_t>(got); ++at) {
      take({state_->buffer.data() + at * kMaxPacketBytes, messages[at].msg_len});
    }
    taken += static_cast<std::size_t>(got);
    if (static_cast<std::size_t>(got) < kBatch) return;
  }
}

std::size_t NicSockets::send(std::span<const Outgoing> packets) {
  std::size_t sent = 0;
  while (sent < packets.size()) {
    std::array<mmsghdr, kBatch> messages{};
    std::array<iovec, kBatch> slots{};
    std::array<sockaddr_storage, kBatch> addresses{};
    const std::size_t count = std::min(kBatch, packets.size() - sent);
    for (std::size_t at = 0; at < count; ++at) {
      const Outgoing& packet = packets[sent + at];
      slots[at] = {const_cast<std::uint8_t*>(packet.bytes.data()), packet.bytes.size()};
      messages[at].msg_hdr.msg_iov = &slots[at];
      messages[at].msg_hdr.msg_iovlen = 1;
      messages[at].msg_hdr.msg_name = &addresses[at];
      messages[at].msg_hdr.msg_namelen = fill_address(packet.destination, addresses[at]);
    }
    const int put = ::sendmmsg(state_->sender.get(), messages.data(), static_cast<unsigned>(count), MSG_DONTWAIT);
    if (put <= 0) return sent;
    sent += static_cast<std::size_t>(put);
    if (static_cast<std::size_t>(put) < count) return sent;
  }
  return sent;
}

std::uint64_t NicSockets::receive_drops() {
  tpacket_stats stats{};
  socklen_t size = sizeof stats;
  // Reading resets the kernel's counter.
  if (::getsockopt(state_->receiver.get(), SOL_PACKET, PACKET_STATISTICS, &stats, &size) == 0) {
    state_->drops += stats.tp_drops;
  }
  return state_->drops;
}

}  // namespace te::lab
