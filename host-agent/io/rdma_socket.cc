// SPDX-License-Identifier: Apache-2.0
#include "host-agent/io/rdma_socket.h"

#include <libmnl/libmnl.h>
#include <rdma/rdma_netlink.h>
#include <sys/time.h>

#include <array>
#include <cerrno>
#include <functional>
#include <utility>

#include "common/netlink/mnl_socket.h"
#include "common/os/file.h"
#include "host-agent/core/rdma_netlink.h"

namespace te::agent {
namespace {

using Payload = std::span<const std::uint8_t>;
using Take = std::function<Result<void>(Payload)>;

using Socket = netlink::MnlSocket;

constexpr std::size_t kBufferBytes = 32768;  // the most that the kernel puts into one part of a dump

/// What libmnl's callback needs: where messages go, and the first Error of them.
struct Dump {
  const Take& take;
  Result<void> outcome;
};

int on_message(const nlmsghdr* message, void* context) {
  auto& dump = *static_cast<Dump*>(context);
  dump.outcome =
      dump.take({static_cast<const std::uint8_t*>(mnl_nlmsg_get_payload(message)), mnl_nlmsg_get_payload_len(message)});
  return dump.outcome ? MNL_CB_OK : MNL_CB_ERROR;
}

Result<void> dump_all(const Socket& socket, std::uint16_t command, const std::uint32_t* device, const Take& take) {
  std::array<char, kBufferBytes> buffer{};
  nlmsghdr* request = mnl_nlmsg_put_header(buffer.data());
  request->nlmsg_type = static_cast<std::uint16_t>(RDMA_NL_GET_TYPE(RDMA_NL_NLDEV, command));
  request->nlmsg_flags = NLM_F_REQUEST | NLM_F_ACK | NLM_F_DUMP;
  request->nlmsg_seq = 1;
  if (device != nullptr) mnl_attr_put_u32(request, RDMA_NLDEV_ATTR_DEV_INDEX, *device);
  if (mnl_socket_sendto(socket.get(), request, request->nlmsg_len) < 0) return errno_error("ask RDMA netlink");
  Dump dump{take, {}};
  const unsigned int port = mnl_socket_get_portid(socket.get());
  while (true) {
    const ssize_t got = mnl_socket_recvfrom(socket.get(), buffer.data(), buffer.size());
    if (got < 0) return errno_error("read RDMA netlink");
    const int more = mnl_cb_run(buffer.data(), static_cast<std::size_t>(got), 1, port, on_message, &dump);
    if (!dump.outcome) return dump.outcome;
    if (more < 0) return errno_error("read RDMA netlink");
    if (more == MNL_CB_STOP) return {};
  }
}

Result<std::vector<QueuePair>> read_all(const Socket& socket) {
  std::vector<RdmaDevice> devices;
  auto listed = dump_all(socket, RDMA_NLDEV_CMD_GET, nullptr, [&](Payload payload) -> Result<void> {
    auto device = parse_rdma_device(payload);
    if (!device) return std::move(device).error();
    devices.push_back(*std::move(device));
    return {};
  });
  if (!listed) return std::move(listed).error();
  if (devices.empty()) return Error{"no RDMA device on this host"};
  std::vector<QueuePair> table;
  for (const RdmaDevice& device : devices) {
    auto read = dump_all(socket, RDMA_NLDEV_CMD_RES_QP_GET, &device.index, [&](Payload payload) -> Result<void> {
      auto part = parse_rdma_queue_pairs(payload);
      if (!part) return std::move(part).error();
      if (table.size() + part->size() > kMaxQueuePairs) return Error{"too many queue pairs"};
      table.insert(table.end(), part->begin(), part->end());
      return {};
    });
    if (!read) return with_context(std::move(read).error(), "queue pairs of " + device.name);
  }
  return table;
}

}  // namespace

RdmaQueuePairs read_rdma_queue_pairs() {
  const Socket socket(mnl_socket_open2(NETLINK_RDMA, SOCK_CLOEXEC));
  if (!socket) {
    const bool supported = errno != EPROTONOSUPPORT;
    return {supported ? errno_error("open RDMA netlink") : Error{"this kernel has no RDMA netlink"}, supported};
  }
  // The kernel answers at once; the limit is for one that does not.
  const timeval limit{1, 0};
  ::setsockopt(mnl_socket_get_fd(socket.get()), SOL_SOCKET, SO_RCVTIMEO, &limit, sizeof(limit));
  if (mnl_socket_bind(socket.get(), 0, MNL_SOCKET_AUTOPID) < 0) return {errno_error("bind RDMA netlink"), true};
  return {read_all(socket), true};
}

}  // namespace te::agent
