// SPDX-License-Identifier: Apache-2.0
#include "host-agent/core/source_board.h"

#include <google/protobuf/util/json_util.h>

#include <algorithm>

namespace te::agent {
namespace {

std::string padded(const std::string& text, std::size_t width) {
  return text + std::string(width > text.size() ? width - text.size() : 0, ' ');
}

}  // namespace

bool SourceBoard::set(const std::string& name, v1::Source::State state, const std::string& reason) {
  auto found =
      std::find_if(sources_.begin(), sources_.end(), [&](const auto& source) { return source.name() == name; });
  const bool known = found != sources_.end();
  if (!known) {
    found = sources_.emplace(sources_.end());
    found->set_name(name);
  }
  const bool differs = found->state() != state || found->reason() != reason;
  if (!known || differs) ++generation_;
  found->set_state(state);
  found->set_reason(reason);
  return known && differs;
}

bool SourceBoard::is_on(const std::string& name) const {
  return std::any_of(sources_.begin(), sources_.end(),
                     [&](const auto& source) { return source.name() == name && source.state() == v1::Source::ON; });
}

void set_tcx(SourceBoard& board, AttachWish wish, const Result<void>& permitted, const Result<void>& supported) {
  if (!permitted) {
    board.set("tcx", v1::Source::OFF, permitted.error().message);
  } else if (!supported) {
    board.set("tcx", v1::Source::NOT_SUPPORTED, supported.error().message);
  } else if (wish == AttachWish::kClsact) {
    board.set("tcx", v1::Source::OFF, "attach: clsact");
  } else {
    board.set("tcx", v1::Source::ON, "");
  }
}

std::string state_name(v1::Source::State state) {
  switch (state) {
    case v1::Source::ON:
      return "on";
    case v1::Source::OFF:
      return "off";
    case v1::Source::NOT_SUPPORTED:
      return "not supported";
    default:
      return "unknown";
  }
}

std::string sources_as_table(const std::vector<v1::Source>& sources) {
  std::size_t name_width = 8;
  for (const v1::Source& source : sources) name_width = std::max(name_width, source.name().size() + 2);
  constexpr std::size_t kStateWidth = 15;
  std::string table = padded("SOURCE", name_width) + padded("STATE", kStateWidth) + "REASON\n";
  for (const v1::Source& source : sources) {
    table += padded(source.name(), name_width) + padded(state_name(source.state()), kStateWidth) +
             (source.reason().empty() ? "-" : source.reason()) + "\n";
  }
  return table;
}

std::string sources_as_json(const std::vector<v1::Source>& sources) {
  google::protobuf::util::JsonPrintOptions options;
  options.always_print_primitive_fields = true;
  std::string json;
  for (const v1::Source& source : sources) {
    std::string object;
    if (!google::protobuf::util::MessageToJsonString(source, &object, options).ok()) continue;
    json += (json.empty() ? "" : ",") + object;
  }
  return "[" + json + "]";
}

}  // namespace te::agent
