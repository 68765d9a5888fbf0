// SPDX-License-Identifier: Apache-2.0
// What is counted in a message before it is decoded is never less than what decoding makes.
#include <cstddef>
#include <cstdint>

#include "te-controller/app/agent_limits.h"
#include "te/v1/agent.pb.h"

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  const std::string_view body(reinterpret_cast<const char*>(data), size);
  const std::size_t reports = te::count_flow_reports(body);
  (void)te::check_agent_message(body);
  te::v1::AgentMessage message;
  if (!message.ParseFromArray(data, static_cast<int>(size))) return 0;
  TE_CHECK(static_cast<std::size_t>(message.flows().flows_size()) <= reports, "reports were missed");
  return 0;
}
