// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <sys/types.h>

#include <cstdint>
#include <functional>
#include <string>
#include <string_view>
#include <vector>

#include "common/base/result.h"

namespace te::lab {

/// A process that is told from a later one with the same number by when it started.
struct ProcessId {
  pid_t pid = 0;
  std::uint64_t start_ticks = 0;  ///< field 22 of /proc/PID/stat
};

/// An Error when there is no such process.
Result<ProcessId> identify(pid_t pid);
[[nodiscard]] bool is_alive(const ProcessId& process);

/// Runs a program with `input` on its standard input and waits for it. An Error holds what it wrote to standard error.
/// It dies with the calling process.
Result<void> run_program(const std::vector<std::string>& arguments, std::string_view input = {});

/// Runs each of `tasks` in a child process of its own, `at_once` at a time, and waits for all. The first Error wins.
Result<void> run_in_children(const std::vector<std::function<Result<void>()>>& tasks, int at_once = 8);

/// Sends SIGTERM to all of `processes`, SIGKILL to those that are left after `grace_ms`, and waits until all are gone.
void end_processes(const std::vector<ProcessId>& processes, int grace_ms);

}  // namespace te::lab
