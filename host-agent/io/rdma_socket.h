// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <vector>

#include "common/base/result.h"
#include "host-agent/core/qp_table.h"

namespace te::agent {

struct RdmaQueuePairs {
  Result<std::vector<QueuePair>> queue_pairs;
  bool supported = true;  ///< false: this kernel has no RDMA netlink
};

/// Asks the kernel (RDMA netlink) for the connected queue pairs of all RDMA devices. No device is an Error: then nobody
/// can say which queue pairs this host's flows belong to.
RdmaQueuePairs read_rdma_queue_pairs();

}  // namespace te::agent
