// SPDX-License-Identifier: Apache-2.0
#include "common/netlink/link_socket.h"

#include <libmnl/libmnl.h>
#include <linux/if_link.h>
#include <linux/rtnetlink.h>
#include <sys/socket.h>
#include <sys/time.h>

#include <array>
#include <cerrno>
#include <cstring>
#include <utility>

#include "common/netlink/mnl_socket.h"
#include "common/os/file.h"

namespace te::netlink {
namespace {

constexpr std::size_t kBufferBytes = 32768;  // the most that the kernel puts into one part of a dump
constexpr int kMonitorBufferBytes = 1 << 20;

/// What libmnl's callback collects, and the first Error of it.
struct Collected {
  LinkNews news;
  Result<void> outcome;
};

int on_message(const nlmsghdr* message, void* context) {
  auto& collected = *static_cast<Collected*>(context);
  if (message->nlmsg_type != RTM_NEWLINK && message->nlmsg_type != RTM_DELLINK) return MNL_CB_OK;
  // Of other families come messages about an interface's membership of a bridge, not about the interface.
  ifinfomsg header{};
  if (mnl_nlmsg_get_payload_len(message) >= sizeof(header)) {
    std::memcpy(&header, mnl_nlmsg_get_payload(message), sizeof(header));
    if (header.ifi_family != AF_UNSPEC) return MNL_CB_OK;
  }
  auto link = parse_link_message(
      {static_cast<const std::uint8_t*>(mnl_nlmsg_get_payload(message)), mnl_nlmsg_get_payload_len(message)});
  if (!link) {
    collected.outcome = std::move(link).error();
    return MNL_CB_ERROR;
  }
  if (message->nlmsg_type == RTM_NEWLINK) {
    collected.news.changed.push_back(*std::move(link));
  } else {
    collected.news.removed.push_back(link->ifindex);
  }
  return MNL_CB_OK;
}

}  // namespace

Result<std::vector<LinkMessage>> read_links() {
  const MnlSocket socket(mnl_socket_open2(NETLINK_ROUTE, SOCK_CLOEXEC));
  if (!socket || mnl_socket_bind(socket.get(), 0, MNL_SOCKET_AUTOPID) < 0) return errno_error("open a netlink socket");
  // The kernel answers at once; the limit is for one that does not.
  const timeval limit{1, 0};
  ::setsockopt(mnl_socket_get_fd(socket.get()), SOL_SOCKET, SO_RCVTIMEO, &limit, sizeof(limit));
  std::array<char, kBufferBytes> buffer{};
  nlmsghdr* request = mnl_nlmsg_put_header(buffer.data());
  request->nlmsg_type = RTM_GETLINK;
  request->nlmsg_flags = NLM_F_REQUEST | NLM_F_DUMP;
  request->nlmsg_seq = 1;
  mnl_nlmsg_put_extra_header(request, sizeof(ifinfomsg));
  if (mnl_socket_sendto(socket.get(), request, request->nlmsg_len) < 0) return errno_error("list network interfaces");
  Collected collected;
  const unsigned int port = mnl_socket_get_portid(socket.get());
  for (int more = MNL_CB_OK; more > MNL_CB_STOP;) {
    const ssize_t got = mnl_socket_recvfrom(socket.get(), buffer.data(), buffer.size());
    if (got < 0) return errno_error("list network interfaces");
    more = mnl_cb_run(buffer.data(), static_cast<std::size_t>(got), 1, port, on_message, &collected);
    if (!collected.outcome) return std::move(collected.outcome).error();
    if (more < 0) return errno_error("list network interfaces");
  }
  return std::move(collected.news.changed);
}

Result<LinkMonitor> LinkMonitor::open() {
  UniqueFd socket(::socket(AF_NETLINK, SOCK_RAW | SOCK_CLOEXEC | SOCK_NONBLOCK, NETLINK_ROUTE));
  if (!socket) return errno_error("open a netlink socket");
  ::setsockopt(socket.get(), SOL_SOCKET, SO_RCVBUF, &kMonitorBufferBytes, sizeof(kMonitorBufferBytes));
  sockaddr_nl address{};
  address.nl_family = AF_NETLINK;
  address.nl_groups = RTMGRP_LINK;
  if (::bind(socket.get(), reinterpret_cast<const sockaddr*>(&address), sizeof(address)) != 0) {
    return errno_error("listen to changes of network interfaces");
  }
  return LinkMonitor(std::move(socket));
}

Result<LinkNews> LinkMonitor::take() {
  Collected collected;
  std::array<char, kBufferBytes> buffer{};
  while (true) {
    const ssize_t got = ::recv(socket_.get(), buffer.data(), buffer.size(), 0);
    if (got < 0 && errno == EINTR) continue;
    if (got < 0 && (errno == EAGAIN || errno == EWOULDBLOCK)) return std::move(collected.news);
    if (got < 0 && errno == ENOBUFS) {
      collected.news.lost = true;
      continue;
    }
    if (got < 0) return errno_error("read changes of network interfaces");
    const int more = mnl_cb_run(buffer.data(), static_cast<std::size_t>(got), 0, 0, on_message, &collected);
    if (!collected.outcome) return std::move(collected.outcome).error();
    if (more < 0) return errno_error("read changes of network interfaces");
  }
}

}  // namespace te::netlink
