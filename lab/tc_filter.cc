// SPDX-License-Identifier: Apache-2.0
#include "lab/tc_filter.h"

#include <bpf/libbpf.h>
#include <net/if.h>

#include <cerrno>
#include <cstring>

#include "common/os/file.h"

namespace te::lab {
namespace {

/// The filter that is te-lab's on every interface, side and place.
constexpr __u32 kHandle = 1;
constexpr __u32 kPriority = 49152;  // what tc takes when none is given

__u32 priority_of(TcSide side, TcPlace place) {
  if (place == TcPlace::kInside) return kPriority;
  return side == TcSide::kIngress ? kPriority - 1 : kPriority + 1;
}

// libbpf refuses its structs when padding in them is not 0: they are never copied.

Result<void> fill(bpf_tc_hook& hook, const std::string& interface, TcSide side) {
  const unsigned index = ::if_nametoindex(interface.c_str());
  if (index == 0) return errno_error("find interface " + interface);
  std::memset(&hook, 0, sizeof hook);
  hook.sz = sizeof hook;
  hook.ifindex = static_cast<int>(index);
  hook.attach_point = side == TcSide::kIngress ? BPF_TC_INGRESS : BPF_TC_EGRESS;
  return {};
}

void fill(bpf_tc_opts& options, __u32 priority = kPriority) {
  std::memset(&options, 0, sizeof options);
  options.sz = sizeof options;
  options.handle = kHandle;
  options.priority = priority;
}

}  // namespace

Result<void> attach_tc(int program_fd, const std::string& interface, TcSide side, TcPlace place) {
  bpf_tc_hook hook;
  auto filled = fill(hook, interface, side);
  if (!filled) return filled;
  const int made = bpf_tc_hook_create(&hook);
  if (made != 0 && made != -EEXIST) return errno_error("add clsact to " + interface, -made);
  bpf_tc_opts options;
  fill(options, priority_of(side, place));
  options.prog_fd = program_fd;
  options.flags = BPF_TC_F_REPLACE;
  const int attached = bpf_tc_attach(&hook, &options);
  if (attached != 0) return errno_error("attach a tc program to " + interface, -attached);
  return {};
}

Result<void> detach_tc(const std::string& interface, TcSide side) {
  bpf_tc_hook hook;
  auto filled = fill(hook, interface, side);
  if (!filled) return filled;
  bpf_tc_opts options;
  fill(options);
  libbpf_set_print(nullptr);
  const int found = bpf_tc_query(&hook, &options);
  if (found == -ENOENT || found == -EINVAL) return {};  // no such filter, or no clsact to have one
  if (found != 0) return errno_error("look for a tc program on " + interface, -found);
  fill(options);
  const int detached = bpf_tc_detach(&hook, &options);
  if (detached != 0) return errno_error("take a tc program off " + interface, -detached);
  return {};
}

}  // namespace te::lab
