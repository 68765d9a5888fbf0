// SPDX-License-Identifier: Apache-2.0
// A FlowUpdate that is read without decoding it first says the same as one that is decoded.
#include <cstddef>
#include <cstdint>

#include "te-controller/engine/flow_news.h"

namespace {

bool same(const te::ReportedFlow& a, const te::ReportedFlow& b) {
  return a.end == b.end && a.record == b.record && a.ended == b.ended && a.rate_bps == b.rate_bps &&
         a.payload_bps == b.payload_bps;
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  constexpr std::size_t kMost = 1000;
  const std::string_view body(reinterpret_cast<const char*>(data), size);
  te::FlowNews news;
  if (!te::read_plain_flow_update(body, kMost, news)) return 0;
  te::v1::AgentMessage message;
  TE_CHECK(message.ParseFromArray(data, static_cast<int>(size)) && message.has_flows(), "it cannot be decoded");
  const auto decoded = te::read_flow_update(message.flows());
  TE_CHECK(decoded, "it is malformed");
  TE_CHECK(decoded->interval_ms == news.interval_ms && decoded->complete == news.complete, "its head differs");
  TE_CHECK(
      decoded->kernel_events_lost == news.kernel_events_lost && decoded->kernel_flows_lost == news.kernel_flows_lost,
      "its counters differ");
  TE_CHECK(decoded->flows.size() == news.flows.size() && news.flows.size() <= kMost, "it has other flows");
  for (std::size_t i = 0; i < news.flows.size(); ++i)
    TE_CHECK(same(news.flows[i], decoded->flows[i]), "a flow differs");
  return 0;
}
