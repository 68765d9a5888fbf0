// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "common/base/result.h"
#include "lab/traffic_plan.h"

namespace te::lab {

/// A change of a flow's label while traffic runs: what moving it by its source port does to an endpoint.
struct Relabel {
  std::int64_t after_ms = 0;  ///< from the start of sending
  std::size_t flow = 0;       ///< index into the flows
  std::uint32_t flow_label = 0;
};

/// Runs one endpoint a host of lab `id` until the time is over or a signal comes, then lets them drain.
/// `labels_path`: see set_flow_labels(); may be empty. Writes traffic.json (the flows) into the lab's directory.
Result<void> run_traffic(const std::string& id, const TrafficOptions& options, const std::string& labels_path,
                         const std::vector<Relabel>& relabels);

}  // namespace te::lab
