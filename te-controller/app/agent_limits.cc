// SPDX-License-Identifier: Apache-2.0
#include "te-controller/app/agent_limits.h"

#include <google/protobuf/io/coded_stream.h>
#include <google/protobuf/wire_format_lite.h>

#include <cstdint>
#include <string>

#include "te/v1/agent.pb.h"

namespace te {
namespace {

using google::protobuf::internal::WireFormatLite;
using google::protobuf::io::CodedInputStream;

/// Calls `field(number, payload)` for each length-delimited field; stops at what is not Protocol Buffers, which the
/// decoder then refuses.
template <class Field>
void each_field(std::string_view message, const Field& field) {
  CodedInputStream input(reinterpret_cast<const std::uint8_t*>(message.data()), static_cast<int>(message.size()));
  while (const std::uint32_t tag = input.ReadTag()) {
    if (WireFormatLite::GetTagWireType(tag) != WireFormatLite::WIRETYPE_LENGTH_DELIMITED) {
      if (!WireFormatLite::SkipField(&input, tag)) return;
      continue;
    }
    std::uint32_t length = 0;
    if (!input.ReadVarint32(&length)) return;
    const auto begin = static_cast<std::size_t>(input.CurrentPosition());
    if (length > message.size() - begin || !input.Skip(static_cast<int>(length))) return;
    field(WireFormatLite::GetTagFieldNumber(tag), message.substr(begin, length));
  }
}

struct Size {
  std::size_t reports = 0;  ///< of flows
  std::size_t others = 0;   ///< bytes that belong to no FlowUpdate
};

Size size_of(std::string_view body) {
  Size size{.reports = 0, .others = body.size()};
  each_field(body, [&](int number, std::string_view payload) {
    if (number != v1::AgentMessage::kFlowsFieldNumber) return;
    size.others -= payload.size();
    each_field(payload, [&](int inner, std::string_view) {
      if (inner == v1::FlowUpdate::kFlowsFieldNumber) ++size.reports;
    });
  });
  return size;
}

}  // namespace

std::size_t count_flow_reports(std::string_view body) { return size_of(body).reports; }

Result<void> check_agent_message(std::string_view body) {
  const Size size = size_of(body);
  if (size.reports > kMostFlowReports) {
    return Error{"a message with " + std::to_string(size.reports) + " flow reports; the limit is " +
                 std::to_string(kMostFlowReports)};
  }
  if (size.others > kMostAgentMessageBytes) {
    return Error{"a message of " + std::to_string(body.size()) + " bytes that is no flow report; the limit is " +
                 std::to_string(kMostAgentMessageBytes)};
  }
  return {};
}

}  // namespace te
