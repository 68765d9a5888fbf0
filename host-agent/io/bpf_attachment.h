// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <span>
#include <string>
#include <vector>

#include "common/base/result.h"
#include "host-agent/core/flow_sample.h"

namespace te::agent {

/// One direction of one interface of the calling thread's network namespace. Indices of two namespaces may be equal, so
/// that pins have the namespace's number in their names; 0: the agent's own.
struct BpfHook {
  std::uint32_t ifindex = 0;
  FlowDirection direction = FlowDirection::kEgress;
  std::uint64_t netns = 0;
};

/// TCX (Linux 6.6): an entry in the hook's own list, held by a link that is pinned in `pin_directory`. Attaching what
/// is attached already is fine; detaching what is not, too.
Result<void> attach_tcx(const std::string& pin_directory, const BpfHook& hook, int program_fd);
Result<void> detach_tcx(const std::string& pin_directory, const BpfHook& hook);
/// Interfaces of the calling thread's network namespace.
Result<std::vector<std::uint32_t>> all_ifindexes();
/// Puts programs into the place of others, on each hook in one step: on all TCX links pinned in `pin_directory`, of
/// whatever namespace.
Result<void> replace_linked(const std::string& pin_directory, int egress_fd, int ingress_fd);
/// The same in the calling thread's network namespace, where one of `old_ids` is attached by clsact.
Result<void> replace_filters(std::span<const std::uint32_t> old_ids, int egress_fd, int ingress_fd);
/// Detaches the TCX links pinned in `pin_directory` for any other hook than `kept`, in whatever namespace they are now.
Result<void> release_other_links(const std::string& pin_directory, std::span<const BpfHook> kept);
/// Detaches all TCX links pinned in `pin_directory`, those of other ABI versions too, and forgets which qdiscs we made.
Result<void> release_attachment_pins(const std::string& pin_directory);
/// Whether the kernel lets this process load tc programs at all; an Error says what to do.
Result<void> require_permission();
/// Whether the kernel takes TCX, without attaching anything.
Result<void> require_tcx();

/// A filter of the clsact qdisc, under a handle and priority of our own. The qdisc is made if missing, which a pin in
/// `pin_directory` remembers.
Result<void> attach_clsact(const std::string& pin_directory, const BpfHook& hook, int program_fd);
/// Only when the filter's program is one of `program_ids`. The qdisc goes too if we made it and no filter is left in
/// it.
Result<void> detach_clsact(const std::string& pin_directory, const BpfHook& hook,
                           std::span<const std::uint32_t> program_ids);

}  // namespace te::agent
