// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <span>
#include <string>

#include "common/base/result.h"
#include "host-agent/core/flow_sample.h"

namespace te::agent {

/// One direction of one interface of the calling thread's network namespace.
struct BpfHook {
  std::uint32_t ifindex = 0;
  FlowDirection direction = FlowDirection::kEgress;
};

/// TCX (Linux 6.6): an entry in the hook's own list, held by a link that is pinned in `pin_directory`. Attaching what
/// is attached already is fine; detaching what is not, too.
Result<void> attach_tcx(const std::string& pin_directory, const BpfHook& hook, int program_fd);
Result<void> detach_tcx(const std::string& pin_directory, const BpfHook& hook);
/// All TCX links pinned in `pin_directory`.
Result<void> detach_every_tcx(const std::string& pin_directory);
/// Whether the kernel takes TCX, without attaching anything.
Result<void> require_tcx();

/// A filter of the clsact qdisc, under a handle and priority of our own. The qdisc is made if missing and never
/// removed: others may have come to use it.
Result<void> attach_clsact(const BpfHook& hook, int program_fd);
/// Only when the filter's program is one of `program_ids`.
Result<void> detach_clsact(const BpfHook& hook, std::span<const std::uint32_t> program_ids);

}  // namespace te::agent
