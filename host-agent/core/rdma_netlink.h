// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <span>
#include <string>
#include <vector>

#include "common/base/result.h"
#include "host-agent/core/qp_table.h"

namespace te::agent {

/// An RDMA device as RDMA_NLDEV_CMD_GET lists it.
struct RdmaDevice {
  std::uint32_t index = 0;
  std::string name;
};

/// Reads the attributes after the netlink header of one RDMA_NLDEV_CMD_GET message (Linux uapi/rdma/rdma_netlink.h).
Result<RdmaDevice> parse_rdma_device(std::span<const std::uint8_t> attributes);
/// Reads one message of a RDMA_NLDEV_CMD_RES_QP_GET dump; keeps connected queue pairs only, as parse_qp_table() does.
/// An Error says which attribute is malformed.
Result<std::vector<QueuePair>> parse_rdma_queue_pairs(std::span<const std::uint8_t> attributes);

}  // namespace te::agent
