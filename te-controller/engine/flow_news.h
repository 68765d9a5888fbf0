// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>
#include <cstdint>
#include <string_view>
#include <vector>

#include "common/base/result.h"
#include "te-controller/engine/flow.h"
#include "te/v1/agent.pb.h"

namespace te {

/// What an update says of one flow.
struct ReportedFlow {
  FlowEndId end;
  FlowRecord record;
  bool ended = false;
  double rate_bps = 0;     ///< IP bits
  double payload_bps = 0;  ///< message data
};

/// A v1::FlowUpdate that was found good, without what nobody reads.
struct FlowNews {
  std::uint32_t interval_ms = 0;
  bool complete = false;
  std::uint64_t kernel_events_lost = 0;
  std::uint64_t kernel_flows_lost = 0;
  std::vector<ReportedFlow> flows;
};

inline constexpr double kHighestRateBps = 1e15;  ///< of a flow; reports of more are malformed

/// An Error: malformed.
Result<FlowNews> read_flow_update(const v1::FlowUpdate& update);
/// The same from a serialised AgentMessage, many times as fast, where that is a FlowUpdate written as agents write it,
/// with `most` flows at most. False: it is not, or it is malformed; `news` is to be ignored, and the message to be
/// decoded. `news` may be used again: its memory is.
bool read_plain_flow_update(std::string_view message, std::size_t most, FlowNews& news);

}  // namespace te
