// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>
#include <string_view>

#include "common/base/result.h"

namespace te {

/// What one agent may ask of the controller. An agent within its host's means never notices them.
struct AgentLimits {
  double frames_per_s = 2000;
  double frames_burst = 4000;
  double bytes_per_s = 16e6;
  double bytes_burst = 32e6;
  std::size_t queue_bytes = std::size_t{4} << 20;  ///< output of a session that waits to be read
};

/// Largest message in bytes that is no FlowUpdate; frames of those are limited by kMaxFrameBytes.
inline constexpr std::size_t kMostAgentMessageBytes = std::size_t{1} << 20;
/// Most reports in one FlowUpdate. Two bytes of wire can ask for 200 of memory: counted before anything is decoded.
inline constexpr std::size_t kMostFlowReports = 65536;

/// Flow reports in a serialised AgentMessage; never fewer than decoding it would make.
std::size_t count_flow_reports(std::string_view body);
/// Whether a serialised AgentMessage may be decoded: an Error says by how much it is too large.
Result<void> check_agent_message(std::string_view body);

}  // namespace te
