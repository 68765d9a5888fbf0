// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <map>
#include <span>
#include <utility>
#include <vector>

#include "host-agent/core/flow_table.h"
#include "host-agent/core/qp_table.h"

namespace te::agent {

/// Notices that the queue pair of a steered flow is gone and its local QPN belongs to another connection now: what the
/// flow was steered for is over.
class QpReuse {
 public:
  /// Takes all flows, paired, and the table of queue pairs; returns the steered flows that this became true of, once.
  [[nodiscard]] std::vector<FlowKey> check(std::span<const FlowRecord> flows, std::span<const QueuePair> table);

 private:
  using QpnPair = std::pair<std::uint32_t, std::uint32_t>;  // local, remote

  std::map<FlowKey, QpnPair> owners_;  // of steered flows, as first paired
};

}  // namespace te::agent
