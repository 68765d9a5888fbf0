// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <libmnl/libmnl.h>

#include <memory>

namespace te::netlink {

struct CloseSocket {
  void operator()(mnl_socket* socket) const { mnl_socket_close(socket); }
};
/// A netlink socket of libmnl; closed with its owner.
using MnlSocket = std::unique_ptr<mnl_socket, CloseSocket>;

}  // namespace te::netlink
