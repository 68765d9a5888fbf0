// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <string>
#include <vector>

#include "common/base/result.h"
#include "lab/process.h"

namespace te::lab {

/// Moves the calling process (it must have one thread) into the network namespace called `name`, and keeps its mounts.
Result<void> enter_netns(const std::string& name);
/// Names of all network namespaces that begin with `prefix`.
[[nodiscard]] std::vector<std::string> netns_with_prefix(const std::string& prefix);
/// Processes that live in one of the namespaces called `names`, the caller excepted.
[[nodiscard]] std::vector<ProcessId> processes_in(const std::vector<std::string>& names);
/// Writes a value below /proc/sys for the calling process's namespace; `path` is relative to /proc/sys.
Result<void> write_sysctl(const std::string& path, const std::string& value);

}  // namespace te::lab
