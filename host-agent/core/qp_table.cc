// SPDX-License-Identifier: Apache-2.0
#include "host-agent/core/qp_table.h"

#include <google/protobuf/struct.pb.h>
#include <google/protobuf/util/json_util.h>

#include <algorithm>
#include <array>
#include <cmath>
#include <optional>
#include <utility>

#include "common/roce/source_port.h"

namespace te::agent {
namespace {

using google::protobuf::Struct;
using google::protobuf::Value;

constexpr std::array<std::string_view, 4> kConnectedTypes = {"RC", "UC", "XRC_INI", "XRC_TGT"};
constexpr std::array<std::string_view, 4> kConnectedStates = {"RTR", "RTS", "SQD", "SQE"};

template <class List>
bool contains(const List& list, std::string_view word) {
  return std::find(list.begin(), list.end(), word) != list.end();
}

const Value* find(const Struct& entry, const std::string& key) {
  const auto found = entry.fields().find(key);
  return found == entry.fields().end() ? nullptr : &found->second;
}

Result<std::string> text_of(const Struct& entry, const std::string& key) {
  const Value* value = find(entry, key);
  if (value == nullptr || value->kind_case() != Value::kStringValue) return Error{"expected a string '" + key + "'"};
  return value->string_value();
}

Result<std::uint32_t> qpn_of(const Value* value, const std::string& key) {
  if (value == nullptr || value->kind_case() != Value::kNumberValue) return Error{"expected a number '" + key + "'"};
  const double number = value->number_value();
  if (number != std::floor(number) || number < 0 || number > roce::kQpnMask) {
    return Error{"expected '" + key + "' from 0 to 16777215"};
  }
  return static_cast<std::uint32_t>(number);
}

Result<std::optional<QueuePair>> read_entry(const Struct& entry) {
  auto device = text_of(entry, "ifname");
  if (!device) return std::move(device).error();
  const auto local = qpn_of(find(entry, "lqpn"), "lqpn");
  if (!local) return local.error();
  const auto type = text_of(entry, "type");
  if (!type) return type.error();
  const auto state = text_of(entry, "state");
  if (!state) return state.error();
  const Value* remote_value = find(entry, "rqpn");
  if (remote_value == nullptr || !contains(kConnectedTypes, *type) || !contains(kConnectedStates, *state)) {
    return std::optional<QueuePair>();
  }
  const auto remote = qpn_of(remote_value, "rqpn");
  if (!remote) return remote.error();
  return std::optional(QueuePair{*std::move(device), *local, *remote});
}

/// The parser quotes the text it failed on over several lines; a log line, and a string of a message, take neither its
/// line breaks nor its bytes that are not ASCII.
std::string one_line(std::string_view text) {
  std::string line;
  for (const char c : text) {
    const bool blank = c == ' ' || c == '\n' || c == '\r' || c == '\t';
    if (blank && line.ends_with(' ')) continue;
    line += blank ? ' ' : c > ' ' && c <= '~' ? c : '?';
  }
  while (line.ends_with(' ') || line.ends_with('^')) line.pop_back();
  return line;
}

}  // namespace

Result<std::vector<QueuePair>> parse_qp_table(std::string_view json, const std::string& source) {
  google::protobuf::ListValue list;
  const auto parsed = google::protobuf::util::JsonStringToMessage({json.data(), json.size()}, &list);
  if (!parsed.ok()) {
    return Error{source + ": expected the JSON list of 'rdma -j resource show qp': " +
                 one_line({parsed.message().data(), parsed.message().size()})};
  }
  if (static_cast<std::size_t>(list.values_size()) > kMaxQueuePairs) {
    return Error{source + ": more than " + std::to_string(kMaxQueuePairs) + " queue pairs"};
  }
  std::vector<QueuePair> table;
  for (int i = 0; i < list.values_size(); ++i) {
    const std::string place = source + ": entry " + std::to_string(i);
    if (list.values(i).kind_case() != Value::kStructValue) return Error{place + ": expected an object"};
    auto entry = read_entry(list.values(i).struct_value());
    if (!entry) return with_context(std::move(entry).error(), place);
    if (*entry) table.push_back(**std::move(entry));
  }
  return table;
}

}  // namespace te::agent
