// SPDX-License-Identifier: Apache-2.0
#include "host-agent/io/prober.h"

#include <linux/icmp.h>
#include <netinet/icmp6.h>
#include <netinet/in.h>
#include <sys/socket.h>

#include <array>
#include <boost/asio/co_spawn.hpp>
#include <boost/asio/detached.hpp>
#include <boost/asio/redirect_error.hpp>
#include <boost/asio/use_awaitable.hpp>
#include <cerrno>
#include <chrono>
#include <cstring>
#include <utility>

#include "bpf/te_abi.h"
#include "common/os/clock.h"
#include "common/os/file.h"
#include "host-agent/core/probe_packet.h"

namespace te::agent {

namespace asio = boost::asio;

namespace {

constexpr int kReceiveBufferBytes = 1 << 20;
constexpr int kAnswersPerWake = 512;

template <class T>
bool set_option(int socket, int level, int option, const T& value) {
  return ::setsockopt(socket, level, option, &value, sizeof(value)) == 0;
}

Result<UniqueFd> open_raw(int family, int protocol) {
  UniqueFd socket(::socket(family, SOCK_RAW | SOCK_CLOEXEC | SOCK_NONBLOCK, protocol));
  if (!socket) return errno_error("open a raw socket (needs CAP_NET_RAW)");
  return socket;
}

/// IPPROTO_RAW sockets send packets with the IP header that they are given.
Result<UniqueFd> open_sender(int family) {
  auto socket = open_raw(family, IPPROTO_RAW);
  if (!socket) return socket;
  constexpr int kMark = kTeProbeMark;
  if (!set_option(socket->get(), SOL_SOCKET, SO_MARK, kMark)) return errno_error("mark probes (needs CAP_NET_ADMIN)");
  // Nothing is ever received here; without a filter the kernel would queue copies of other packets.
  constexpr int kNone = 0;
  set_option(socket->get(), SOL_SOCKET, SO_RCVBUF, kNone);
  return socket;
}

Result<UniqueFd> open_listener_v4() {
  auto socket = open_raw(AF_INET, IPPROTO_ICMP);
  if (!socket) return socket;
  icmp_filter filter{};
  filter.data = ~(1U << ICMP_TIME_EXCEEDED | 1U << ICMP_DEST_UNREACH);
  if (!set_option(socket->get(), SOL_RAW, ICMP_FILTER, filter)) return errno_error("filter ICMP");
  set_option(socket->get(), SOL_SOCKET, SO_RCVBUF, kReceiveBufferBytes);
  return socket;
}

Result<UniqueFd> open_listener_v6() {
  auto socket = open_raw(AF_INET6, IPPROTO_ICMPV6);
  if (!socket) return socket;
  icmp6_filter filter{};
  ICMP6_FILTER_SETBLOCKALL(&filter);
  ICMP6_FILTER_SETPASS(ICMP6_TIME_EXCEEDED, &filter);
  ICMP6_FILTER_SETPASS(ICMP6_DST_UNREACH, &filter);
  if (!set_option(socket->get(), IPPROTO_ICMPV6, ICMP6_FILTER, filter)) return errno_error("filter ICMPv6");
  set_option(socket->get(), SOL_SOCKET, SO_RCVBUF, kReceiveBufferBytes);
  return socket;
}

/// sendmsg() out of one interface and from the flow's own address: hosts with several NICs route by the source.
template <class Address, class PacketInfo>
Result<void> send_from(int socket, std::vector<std::uint8_t>& packet, Address& to, int level, int type,
                       const PacketInfo& info) {
  alignas(cmsghdr) std::array<char, CMSG_SPACE(sizeof(PacketInfo))> control{};
  iovec part{packet.data(), packet.size()};
  msghdr message{};
  message.msg_name = &to;
  message.msg_namelen = sizeof(to);
  message.msg_iov = &part;
  message.msg_iovlen = 1;
  message.msg_control = control.data();
  message.msg_controllen = control.size();
  cmsghdr* header = CMSG_FIRSTHDR(&message);
  header->cmsg_level = level;
  header->cmsg_type = type;
  header->cmsg_len = CMSG_LEN(sizeof(info));
  std::memcpy(CMSG_DATA(header), &info, sizeof(info));
  if (::sendmsg(socket, &message, 0) >= 0) return {};
  // A full queue is a lost probe like any other: it is tried again.
  if (errno == EAGAIN || errno == ENOBUFS || errno == EINTR) return {};
  return errno_error("send a probe");
}

}  // namespace

Prober::Prober(asio::io_context& io, std::function<void(const ProbeReport&)> deliver)
    : io_(io), deliver_(std::move(deliver)), hear_v4_(io), hear_v6_(io), timer_(io) {}

Result<void> Prober::open() {
  auto sender = open_sender(AF_INET);
  if (!sender) return std::move(sender).error();
  auto listener = open_listener_v4();
  if (!listener) return std::move(listener).error();
  send_v4_ = *std::move(sender);
  hear_v4_.assign(listener->release());
  auto sender_v6 = open_sender(AF_INET6);
  auto listener_v6 = open_listener_v6();
  if (sender_v6 && listener_v6) {
    send_v6_ = *std::move(sender_v6);
    hear_v6_.assign(listener_v6->release());
    asio::co_spawn(io_, listen(hear_v6_, true), asio::detached);
  }
  asio::co_spawn(io_, listen(hear_v4_, false), asio::detached);
  asio::co_spawn(io_, pace(), asio::detached);
  return {};
}

void Prober::start(ProbeOrder order) {
  const std::uint64_t id = order.id;
  Result<void> started = Error{"this host cannot send probes of that address family"};
  if (order.flow.source.is_v6() ? bool{send_v6_} : bool{send_v4_}) {
    started = scheduler_.start(std::move(order), monotonic_ns());
  }
  if (started) {
    timer_.cancel();
  } else {
    deliver_({id, {}, 0, 0, true, started.error().message});
  }
}

void Prober::stop() {
  stopped_ = true;
  scheduler_.cancel_all();
  timer_.cancel();
  hear_v4_.close();
  hear_v6_.close();
  send_v4_.reset();
  send_v6_.reset();
}

void Prober::stop(const std::string& why) {
  scheduler_.fail_all(why);
  deliver_reports();
  stop();
}

asio::awaitable<void> Prober::pace() {
  while (!stopped_) {
    send_due();
    deliver_reports();
    const std::int64_t wake_ns = scheduler_.wake_at();
    if (wake_ns == ProbeScheduler::kNever) {
      timer_.expires_at(asio::steady_timer::time_point::max());
    } else {
      timer_.expires_at(asio::steady_timer::time_point(std::chrono::nanoseconds(wake_ns)));
    }
    boost::system::error_code woken;
    co_await timer_.async_wait(asio::redirect_error(asio::use_awaitable, woken));
  }
}

void Prober::send_due() {
  while (const auto probe = scheduler_.next(monotonic_ns())) {
    ++counts_.sent;
    if (auto sent = send(*probe); !sent) scheduler_.fail(probe->order_id, sent.error().message);
  }
}

Result<void> Prober::send(const Probe& probe) {
  std::vector<std::uint8_t> packet = probe_packet(probe);
  const auto source = probe.flow.source.bytes();
  const auto destination = probe.flow.destination.bytes();
  if (probe.flow.destination.is_v4()) {
    sockaddr_in to{};
    to.sin_family = AF_INET;
    std::memcpy(&to.sin_addr, destination.data(), destination.size());
    in_pktinfo info{};
    info.ipi_ifindex = static_cast<int>(probe.flow.ifindex);
    std::memcpy(&info.ipi_spec_dst, source.data(), source.size());
    return send_from(send_v4_.get(), packet, to, IPPROTO_IP, IP_PKTINFO, info);
  }
  sockaddr_in6 to{};
  to.sin6_family = AF_INET6;
  std::memcpy(&to.sin6_addr, destination.data(), destination.size());
  in6_pktinfo info{};
  info.ipi6_ifindex = probe.flow.ifindex;
  std::memcpy(&info.ipi6_addr, source.data(), source.size());
  return send_from(send_v6_.get(), packet, to, IPPROTO_IPV6, IPV6_PKTINFO, info);
}

void Prober::deliver_reports() {
  for (const ProbeReport& report : scheduler_.take_reports(monotonic_ns())) {
    counts_.lost += report.lost;
    deliver_(report);
  }
}

asio::awaitable<void> Prober::listen(asio::posix::stream_descriptor& socket, bool v6) {
  while (!stopped_) {
    boost::system::error_code failed;
    co_await socket.async_wait(asio::posix::stream_descriptor::wait_read,
                               asio::redirect_error(asio::use_awaitable, failed));
    if (failed) co_return;
    hear(socket.native_handle(), v6);
    timer_.cancel();  // what was answered may be complete
  }
}

void Prober::hear(int socket, bool v6) {
  std::array<std::uint8_t, 2048> buffer{};
  for (int i = 0; i < kAnswersPerWake; ++i) {
    sockaddr_in6 from{};
    socklen_t from_size = sizeof(from);
    const ssize_t got =
        ::recvfrom(socket, buffer.data(), buffer.size(), MSG_DONTWAIT, reinterpret_cast<sockaddr*>(&from), &from_size);
    if (got < 0) return;
    const auto packet = std::span<const std::uint8_t>(buffer).first(static_cast<std::size_t>(got));
    if (v6) {
      std::array<std::uint8_t, 16> responder{};
      std::memcpy(responder.data(), &from.sin6_addr, responder.size());
      take(parse_icmpv6_answer(packet), IpAddress::v6(responder));
    } else {
      const auto answer = parse_icmpv4_answer(packet);
      take(answer, answer ? answer->responder : IpAddress());
    }
  }
}

void Prober::take(const Result<IcmpAnswer>& answer, const IpAddress& responder) {
  if (!answer) return;  // about packets that are not RoCEv2, or malformed
  if (!scheduler_.answer(answer->quoted, responder, monotonic_ns(), answer->unreachable)) {
    ++counts_.unknown_answers;
  } else if (answer->unreachable) {
    ++counts_.unreachable;
  } else {
    ++counts_.answered;
  }
}

}  // namespace te::agent
