// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <optional>
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
  /// is taken away first. What is pinned must be of this build's ABI version.
  static Result<BpfObjects> open(const std::string& directory);
  /// Loads beside what `directory` holds, for succeed_pins().
  static Result<BpfObjects> open_successor(const std::string& directory);
};

/// ABI version of the programs pinned in `directory`; none: there are none.
Result<std::optional<std::uint32_t>> pinned_abi_version(const std::string& directory);
/// Puts the pins of the successor into the place of those in `directory`. The version goes last: until then, and after
/// a death on the way, what is pinned counts as of the old one.
Result<void> succeed_pins(const std::string& directory);

/// The kernel's number of a program; an Error when `program_fd` is none.
Result<std::uint32_t> program_id(int program_fd);
/// Unpins programs and maps in `directory` and removes it when nothing else is in it; programs that are still attached
/// run on. A missing directory is fine.
Result<void> remove_pins(const std::string& directory);

}  // namespace te::agent
