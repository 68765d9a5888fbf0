// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <vector>

#include "common/netlink/link_message.h"
#include "common/os/unique_fd.h"

namespace te::netlink {

/// All network interfaces of the calling thread's network namespace.
Result<std::vector<LinkMessage>> read_links();

/// What a LinkMonitor heard since it was last asked.
struct LinkNews {
  std::vector<LinkMessage> changed;    ///< newest last
  std::vector<std::uint32_t> removed;  ///< ifindex of each
  bool lost = false;                   ///< the kernel had more than the socket could hold: read_links() again
};

/// Hears of changes of the network interfaces of the namespace in which it was opened (RTNLGRP_LINK).
class LinkMonitor {
 public:
  static Result<LinkMonitor> open();

  /// Readable when there is news; does not block.
  [[nodiscard]] int fd() const { return socket_.get(); }
  Result<LinkNews> take();

 private:
  explicit LinkMonitor(UniqueFd socket) : socket_(std::move(socket)) {}

  UniqueFd socket_;
};

}  // namespace te::netlink
