// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "common/base/result.h"

namespace te::agent {

/// A connected queue pair of this host (types RC, UC, XRC_INI, XRC_TGT). QPNs: 24 bits.
struct QueuePair {
  std::string device;  ///< RDMA device, e.g. "mlx5_0"
  std::uint32_t local_qpn = 0;
  std::uint32_t remote_qpn = 0;
  auto operator<=>(const QueuePair&) const = default;
};

/// Most queue pairs taken from one source; a longer table is an Error.
inline constexpr std::size_t kMaxQueuePairs = 262144;

/// Reads the JSON of `rdma -j resource show qp`. Queue pairs that are not connected (no remote QPN, another type or a
/// state before RTR or in error) are left out. An Error names `source` and the entry, and says what was expected.
Result<std::vector<QueuePair>> parse_qp_table(std::string_view json, const std::string& source);

}  // namespace te::agent
