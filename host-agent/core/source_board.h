// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "common/base/result.h"
#include "host-agent/core/agent_config.h"
#include "te/v1/agent.pb.h"

namespace te::agent {

/// What this host can observe or do ("tc", "tcx", "qp", "probe"), and why not.
class SourceBoard {
 public:
  /// Notes a source's state; true when it was another before.
  bool set(const std::string& name, v1::Source::State state, const std::string& reason);
  [[nodiscard]] bool is_on(const std::string& name) const;
  /// Another number after each change of what all() says.
  [[nodiscard]] std::uint64_t generation() const { return generation_; }
  [[nodiscard]] const std::vector<v1::Source>& all() const { return sources_; }

 private:
  std::vector<v1::Source> sources_;
  std::uint64_t generation_ = 0;
};

/// Notes "tcx" by what the kernel said: whether we may ask it, and what it answered.
void set_tcx(SourceBoard& board, AttachWish wish, const Result<void>& permitted, const Result<void>& supported);

/// "on", "off" or "not supported".
[[nodiscard]] std::string state_name(v1::Source::State state);
/// One aligned line a source under a heading, for people.
[[nodiscard]] std::string sources_as_table(const std::vector<v1::Source>& sources);
/// A JSON list of {"name", "state": "ON" | "OFF" | "NOT_SUPPORTED", "reason"}, for programs.
[[nodiscard]] std::string sources_as_json(const std::vector<v1::Source>& sources);

}  // namespace te::agent
