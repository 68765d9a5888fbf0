// SPDX-License-Identifier: Apache-2.0
#include "host-agent/io/bpf_tc_filters.h"

#include <libmnl/libmnl.h>
#include <linux/pkt_sched.h>
#include <linux/rtnetlink.h>

#include <array>
#include <cerrno>

#include "common/netlink/mnl_socket.h"
#include "common/os/file.h"

namespace te::agent {
namespace {

int note_filter(const nlmsghdr* message, void* found) {
  if (message->nlmsg_type == RTM_NEWTFILTER) *static_cast<bool*>(found) = true;
  return MNL_CB_OK;
}

/// Lists the filters below `parent`, one of the two hooks of a clsact qdisc.
Result<bool> has_filters_at(mnl_socket* socket, std::uint32_t ifindex, std::uint32_t parent) {
  alignas(nlmsghdr) std::array<char, 8192> buffer{};
  nlmsghdr* request = mnl_nlmsg_put_header(buffer.data());
  request->nlmsg_type = RTM_GETTFILTER;
  request->nlmsg_flags = NLM_F_REQUEST | NLM_F_DUMP;
  request->nlmsg_seq = parent;
  auto* filter = static_cast<tcmsg*>(mnl_nlmsg_put_extra_header(request, sizeof(tcmsg)));
  filter->tcm_family = AF_UNSPEC;
  filter->tcm_ifindex = static_cast<int>(ifindex);
  filter->tcm_parent = parent;
  if (mnl_socket_sendto(socket, request, request->nlmsg_len) < 0) return errno_error("list tc filters");
  bool found = false;
  int more = MNL_CB_OK;
  while (more > MNL_CB_STOP) {
    const ssize_t size = mnl_socket_recvfrom(socket, buffer.data(), buffer.size());
    if (size < 0) return errno_error("list tc filters");
    more = mnl_cb_run(buffer.data(), static_cast<std::size_t>(size), parent, mnl_socket_get_portid(socket), note_filter,
                      &found);
    if (more < 0 && errno == EINVAL) return false;  // no such qdisc
    if (more < 0) return errno_error("list tc filters");
  }
  return found;
}

}  // namespace

Result<bool> has_tc_filters(std::uint32_t ifindex) {
  const netlink::MnlSocket socket(mnl_socket_open(NETLINK_ROUTE));
  if (!socket || mnl_socket_bind(socket.get(), 0, MNL_SOCKET_AUTOPID) != 0) return errno_error("open a netlink socket");
  for (const std::uint32_t hook : {TC_H_MIN_INGRESS, TC_H_MIN_EGRESS}) {
    auto found = has_filters_at(socket.get(), ifindex, TC_H_MAKE(TC_H_CLSACT, hook));
    if (!found || *found) return found;
  }
  return false;
}

}  // namespace te::agent
