// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <utility>

#include "common/base/result.h"
#include "common/os/unique_fd.h"
#include "host-agent/core/agent_config.h"

namespace te::agent {

/// Held by the one process that may work on a node's pinned programs. The kernel lets go of it with the process,
/// however that ends. Nodes of one name on different bpffs do not exclude each other.
class InstanceLock {
 public:
  /// Does not wait; makes `config.run_directory`. An Error names the process that holds the lock, if it is known.
  static Result<InstanceLock> take(const AgentConfig& config);

 private:
  explicit InstanceLock(UniqueFd file) : file_(std::move(file)) {}

  UniqueFd file_;
};

}  // namespace te::agent
