// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <string>

#include "common/base/result.h"
#include "common/os/unique_fd.h"

namespace te::agent {

/// Programs and maps of one host, open. They stay in the kernel after the agent through pins in a directory on a bpffs.
struct BpfObjects {
  UniqueFd egress_program;
  UniqueFd ingress_program;
  UniqueFd control_program;
  UniqueFd flows_v4;
  UniqueFd flows_v6;
  UniqueFd events;
  UniqueFd losses;

  /// Adopts what `directory` holds, or loads and pins; makes the directory. What an agent that died while pinning left
  /// is taken away first. An Error when another ABI version is pinned.
  static Result<BpfObjects> open(const std::string& directory);
};

/// The kernel's number of a program; an Error when `program_fd` is none.
Result<std::uint32_t> program_id(int program_fd);
/// Unpins programs and maps in `directory` and removes it when nothing else is in it; programs that are still attached
/// run on. A missing directory is fine.
Result<void> remove_pins(const std::string& directory);

}  // namespace te::agent
