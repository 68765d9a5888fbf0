// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <vector>

#include "host-agent/core/agent_config.h"
#include "host-agent/core/qp_table.h"
#include "te/v1/agent.pb.h"

namespace te::agent {

/// Where the host's table of queue pairs is read from.
class QpSource {
 public:
  /// A reading: the source's state, and the table when it is on and has changed.
  struct Reading {
    v1::Source::State state = v1::Source::OFF;
    std::string reason;
    std::optional<std::vector<QueuePair>> table;
  };

  QpSource() = default;
  QpSource(const QpSource&) = delete;
  QpSource& operator=(const QpSource&) = delete;
  virtual ~QpSource() = default;

  /// Looks for a newer table. Cheap when nothing changed; it may repeat its last answer until it is time to look again.
  virtual Reading poll(std::int64_t now_ns) = 0;
};

std::unique_ptr<QpSource> make_qp_source(const QpSourceConfig& config);

}  // namespace te::agent
