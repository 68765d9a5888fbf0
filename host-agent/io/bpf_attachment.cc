// SPDX-License-Identifier: Apache-2.0
#include "host-agent/io/bpf_attachment.h"

#include <bpf/bpf.h>
#include <bpf/libbpf.h>
#include <net/if.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <climits>
#include <filesystem>
#include <memory>
#include <set>
#include <string_view>
#include <system_error>
#include <vector>

#include "common/os/file.h"
#include "common/os/unique_fd.h"
#include "host-agent/io/bpf_messages.h"
#include "host-agent/io/bpf_objects.h"
#include "host-agent/io/bpf_tc_filters.h"

namespace te::agent {
namespace {

namespace fs = std::filesystem;

// Linux 6.6 include/uapi/linux/bpf.h; the headers of Debian 12 do not know them yet.
constexpr auto kTcxIngress = static_cast<bpf_attach_type>(46);
constexpr auto kTcxEgress = static_cast<bpf_attach_type>(47);
constexpr std::uint32_t kLinkTypeTcx = 11;
constexpr std::size_t kTcxMost = 64;  // programs of one hook (Linux 6.6 include/linux/bpf_mprog.h)

constexpr std::string_view kLinkPrefix = "tcx_";
constexpr std::string_view kElsewhere = "_at_";
constexpr std::string_view kQdiscPrefix = "clsact_";
constexpr std::uint32_t kTcHandle = 0x7e;
constexpr std::uint32_t kTcPriority = 1;  // the sooner, the less is hidden by filters that end the chain

struct FreeInterfaceNames {
  void operator()(struct if_nameindex* names) const { if_freenameindex(names); }
};

const char* name_of(FlowDirection direction) { return direction == FlowDirection::kEgress ? "egress" : "ingress"; }

std::string describe(const BpfHook& hook) {
  return std::string(name_of(hook.direction)) + " of interface index " + std::to_string(hook.ifindex);
}

/// INDEX, or INDEX_at_NAMESPACE.
std::string place_of(const BpfHook& hook) {
  const std::string index = std::to_string(hook.ifindex);
  return hook.netns == 0 ? index : index + std::string(kElsewhere) + std::to_string(hook.netns);
}

std::string link_name(const BpfHook& hook) {
  return std::string(kLinkPrefix) + name_of(hook.direction) + "_" + place_of(hook);
}

std::string link_path(const std::string& pin_directory, const BpfHook& hook) {
  return pin_directory + "/" + link_name(hook);
}

bpf_attach_type tcx_type(FlowDirection direction) {
  return direction == FlowDirection::kEgress ? kTcxEgress : kTcxIngress;
}

/// Whether a program is attached by TCX to the interface that has the hook's index in this network namespace now.
bool runs_on(const BpfHook& hook, std::uint32_t wanted_program_id) {
  std::array<std::uint32_t, kTcxMost> ids{};
  auto count = static_cast<std::uint32_t>(ids.size());
  // The argument is called a file descriptor, and is an interface index where the type is TCX.
  if (bpf_prog_query(static_cast<int>(hook.ifindex), tcx_type(hook.direction), 0, nullptr, ids.data(), &count) != 0) {
    return false;
  }
  return std::find(ids.begin(), ids.begin() + count, wanted_program_id) != ids.begin() + count;
}

/// Whether the link runs this program on this interface; the index reads 0 once the interface is gone. A NIC that was
/// moved to another namespace keeps its index there: then the interface here that has the index is asked.
bool link_is_in_force(int link_fd, const BpfHook& hook, std::uint32_t wanted_program_id) {
  bpf_link_info info{};
  std::uint32_t size = sizeof info;
  if (bpf_obj_get_info_by_fd(link_fd, &info, &size) != 0) return false;
  // Of a TCX link, the first field of the union is the interface index, as it is of an XDP link.
  return info.type == kLinkTypeTcx && info.prog_id == wanted_program_id && info.xdp.ifindex == hook.ifindex &&
         runs_on(hook, wanted_program_id);
}

Result<void> remove_link(const std::string& path) {
  const UniqueFd link(bpf_obj_get(path.c_str()));
  if (!link) {
    if (errno == ENOENT) return {};
    return errno_error("open " + path);
  }
  // Unpinning alone would detach some time later, after a grace period. ENOLINK: the interface went before us.
  if (bpf_link_detach(link.get()) != 0 && errno != ENOLINK) return errno_error("detach " + path);
  std::error_code error;
  fs::remove(path, error);
  if (error) return errno_error("remove " + path, error.value());
  return {};
}

bpf_tc_hook tc_hook(const BpfHook& hook) {
  bpf_tc_hook out{};
  out.sz = sizeof out;
  out.ifindex = static_cast<int>(hook.ifindex);
  out.attach_point = hook.direction == FlowDirection::kEgress ? BPF_TC_EGRESS : BPF_TC_INGRESS;
  return out;
}

bpf_tc_opts our_filter() {
  bpf_tc_opts out{};
  out.sz = sizeof out;
  out.handle = kTcHandle;
  out.priority = kTcPriority;
  return out;
}

/// The whole qdisc rather than one of its hooks.
bpf_tc_hook clsact_of(const BpfHook& hook) {
  bpf_tc_hook out = tc_hook(hook);
  out.attach_point = static_cast<bpf_tc_attach_point>(BPF_TC_INGRESS | BPF_TC_EGRESS);
  return out;
}

std::string qdisc_note(const std::string& pin_directory, const BpfHook& hook) {
  return pin_directory + "/" + std::string(kQdiscPrefix) + place_of(hook);
}

/// A pin of any object will do as a note that outlives the agent.
Result<void> note_made_qdisc(const std::string& pin_directory, const BpfHook& hook, int program_fd) {
  const std::string note = qdisc_note(pin_directory, hook);
  if (bpf_obj_pin(program_fd, note.c_str()) != 0 && errno != EEXIST) return errno_error("pin " + note);
  return {};
}

Result<void> remove_made_qdisc(const std::string& pin_directory, const BpfHook& hook) {
  const std::string note = qdisc_note(pin_directory, hook);
  std::error_code error;
  if (!fs::exists(note, error)) return {};
  const auto used = has_tc_filters(hook.ifindex);
  if (!used) return used.error();
  if (*used) return {};
  bpf_tc_hook qdisc = clsact_of(hook);
  const BpfMessages messages;
  if (const int destroyed = bpf_tc_hook_destroy(&qdisc);
      destroyed != 0 && destroyed != -ENOENT && destroyed != -EINVAL) {
    return messages.error("remove the clsact qdisc of " + describe(hook), -destroyed);
  }
  fs::remove(note, error);
  if (error) return errno_error("remove " + note, error.value());
  return {};
}

/// The program of our filter; 0: there is no such filter, or no clsact qdisc.
std::uint32_t filter_program_id(const bpf_tc_hook& hook) {
  bpf_tc_opts filter = our_filter();
  return bpf_tc_query(&hook, &filter) == 0 ? filter.prog_id : 0;
}

/// Whether a program is one of ours, perhaps of an agent whose pins are gone.
bool is_named_like_ours(std::uint32_t id) {
  const UniqueFd program(bpf_prog_get_fd_by_id(id));
  bpf_prog_info info{};
  std::uint32_t size = sizeof info;
  if (!program || bpf_obj_get_info_by_fd(program.get(), &info, &size) != 0) return false;
  return std::string_view(info.name).starts_with("te_");
}

/// "return -1" (look at the next program): enough to be asked for.
UniqueFd load_probe_program() {
  const std::array<bpf_insn, 2> next{bpf_insn{BPF_ALU64 | BPF_MOV | BPF_K, 0, 0, 0, -1},
                                     bpf_insn{BPF_JMP | BPF_EXIT, 0, 0, 0, 0}};
  return UniqueFd(bpf_prog_load(BPF_PROG_TYPE_SCHED_CLS, "te_probe", "GPL", next.data(), next.size(), nullptr));
}

}  // namespace

Result<void> attach_tcx(const std::string& pin_directory, const BpfHook& hook, int program_fd) {
  const auto id = program_id(program_fd);
  if (!id) return id.error();
  const std::string path = link_path(pin_directory, hook);
  if (const UniqueFd pinned(bpf_obj_get(path.c_str())); pinned) {
    if (link_is_in_force(pinned.get(), hook, *id)) return {};
    // Another program of ours is replaced in one step; a link whose interface is gone is of no more use.
    if (bpf_link_update(pinned.get(), program_fd, nullptr) == 0 && link_is_in_force(pinned.get(), hook, *id)) return {};
  }
  if (auto removed = remove_link(path); !removed) return removed;
  const BpfMessages messages;
  const UniqueFd link(bpf_link_create(program_fd, static_cast<int>(hook.ifindex), tcx_type(hook.direction), nullptr));
  if (!link) return messages.error("attach by TCX to " + describe(hook), errno);
  if (bpf_obj_pin(link.get(), path.c_str()) != 0) return errno_error("pin " + path);
  return {};
}

Result<void> detach_tcx(const std::string& pin_directory, const BpfHook& hook) {
  return remove_link(link_path(pin_directory, hook));
}

Result<std::vector<std::uint32_t>> all_ifindexes() {
  const std::unique_ptr<struct if_nameindex, FreeInterfaceNames> names(::if_nameindex());
  if (!names) return errno_error("list the interfaces of this network namespace");
  std::vector<std::uint32_t> all;
  for (const struct if_nameindex* entry = names.get(); entry->if_index != 0; ++entry) all.push_back(entry->if_index);
  return all;
}

Result<void> replace_linked(const std::string& pin_directory, int egress_fd, int ingress_fd) {
  std::error_code error;
  for (const auto& entry : fs::directory_iterator(pin_directory, error)) {
    const std::string name = entry.path().filename();
    if (!name.starts_with(kLinkPrefix)) continue;
    const UniqueFd link(bpf_obj_get(entry.path().c_str()));
    if (!link) return errno_error("open " + entry.path().string());
    const bool egress = name.starts_with(std::string(kLinkPrefix) + name_of(FlowDirection::kEgress));
    // ENOLINK: its interface is gone.
    if (bpf_link_update(link.get(), egress ? egress_fd : ingress_fd, nullptr) != 0 && errno != ENOLINK) {
      return errno_error("replace the program of " + entry.path().string());
    }
  }
  if (error) return errno_error("list " + pin_directory, error.value());
  return {};
}

Result<void> replace_filters(std::span<const std::uint32_t> old_ids, int egress_fd, int ingress_fd) {
  const auto interfaces = all_ifindexes();
  if (!interfaces) return interfaces.error();
  const BpfMessages messages;
  for (const std::uint32_t ifindex : *interfaces) {
    for (const FlowDirection direction : {FlowDirection::kEgress, FlowDirection::kIngress}) {
      const bpf_tc_hook point = tc_hook({ifindex, direction});
      const std::uint32_t present = filter_program_id(point);
      if (present == 0 || std::find(old_ids.begin(), old_ids.end(), present) == old_ids.end()) continue;
      bpf_tc_opts filter = our_filter();
      filter.prog_fd = direction == FlowDirection::kEgress ? egress_fd : ingress_fd;
      filter.flags = BPF_TC_F_REPLACE;
      if (const int replaced = bpf_tc_attach(&point, &filter); replaced != 0) {
        return messages.error("replace the program at " + describe({ifindex, direction}), -replaced);
      }
    }
  }
  return {};
}

Result<void> release_other_links(const std::string& pin_directory, std::span<const BpfHook> kept) {
  std::set<std::string> kept_names;
  for (const BpfHook& hook : kept) kept_names.insert(link_name(hook));
  std::error_code error;
  std::vector<fs::path> left;
  for (const auto& entry : fs::directory_iterator(pin_directory, error)) {
    const std::string name = entry.path().filename();
    if (name.starts_with(kLinkPrefix) && !kept_names.contains(name)) left.push_back(entry.path());
  }
  if (error) return errno_error("list " + pin_directory, error.value());
  for (const auto& path : left) {
    if (auto removed = remove_link(path); !removed) return removed;
  }
  return {};
}

Result<void> release_attachment_pins(const std::string& pin_directory) {
  std::error_code error;
  std::vector<fs::path> pins;
  for (const auto& entry : fs::directory_iterator(pin_directory, error)) pins.push_back(entry.path());
  if (error && error != std::errc::no_such_file_or_directory)
    return errno_error("list " + pin_directory, error.value());
  for (const auto& path : pins) {
    const std::string name = path.filename();
    if (name.starts_with(kLinkPrefix)) {
      if (auto removed = remove_link(path); !removed) return removed;
    }
    if (name.starts_with(kQdiscPrefix) && !fs::remove(path, error) && error) {
      return errno_error("remove " + path.string(), error.value());
    }
  }
  return {};
}

Result<void> require_permission() {
  const BpfMessages messages;
  if (load_probe_program() || (errno != EPERM && errno != EACCES)) return {};
  return Error{"no permission: run as root"};
}

Result<void> require_tcx() {
  const BpfMessages messages;
  const UniqueFd program = load_probe_program();
  if (!program) return messages.error("load a probe program for TCX", errno);
  // No interface has the last index, so a kernel that knows TCX says ENODEV.
  const UniqueFd link(bpf_link_create(program.get(), INT_MAX, kTcxEgress, nullptr));
  if (link || errno == ENODEV) return {};
  if (errno == EINVAL) return Error{"this kernel has no TCX (Linux 6.6 and later have)"};
  return messages.error("ask the kernel for TCX", errno);
}

Result<void> attach_clsact(const std::string& pin_directory, const BpfHook& hook, int program_fd) {
  const BpfMessages messages;
  bpf_tc_hook qdisc = clsact_of(hook);
  const int made = bpf_tc_hook_create(&qdisc);
  if (made != 0 && made != -EEXIST) return messages.error("add a clsact qdisc for " + describe(hook), -made);
  if (made == 0) {
    if (auto noted = note_made_qdisc(pin_directory, hook, program_fd); !noted) return noted;
  }
  const bpf_tc_hook point = tc_hook(hook);
  const auto id = program_id(program_fd);
  if (!id) return id.error();
  const std::uint32_t present = filter_program_id(point);
  if (present == *id) return {};
  if (present != 0 && !is_named_like_ours(present)) {
    return Error{"attach by clsact to " + describe(hook) +
                 ": a program of somebody else, perhaps another host-agent, has priority 1 handle 0x7e; move it away"};
  }
  bpf_tc_opts filter = our_filter();
  filter.prog_fd = program_fd;
  filter.flags = present != 0 ? BPF_TC_F_REPLACE : 0;
  if (const int attached = bpf_tc_attach(&point, &filter); attached != 0) {
    return messages.error("attach by clsact to " + describe(hook) + " (priority 1)", -attached);
  }
  return {};
}

Result<void> detach_clsact(const std::string& pin_directory, const BpfHook& hook,
                           std::span<const std::uint32_t> program_ids) {
  const BpfMessages messages;
  const bpf_tc_hook point = tc_hook(hook);
  const std::uint32_t present = filter_program_id(point);
  if (std::find(program_ids.begin(), program_ids.end(), present) != program_ids.end()) {
    const bpf_tc_opts filter = our_filter();
    if (const int detached = bpf_tc_detach(&point, &filter); detached != 0 && detached != -ENOENT) {
      return messages.error("detach by clsact from " + describe(hook), -detached);
    }
  }
  return remove_made_qdisc(pin_directory, hook);
}

}  // namespace te::agent
