// SPDX-License-Identifier: Apache-2.0
#include "lab/switch_control.h"

#include <bpf/libbpf.h>
#include <unistd.h>

#include <cerrno>
#include <filesystem>
#include <memory>

#include "common/os/file.h"
#include "lab/cable_end.h"
#include "lab/netns.h"
#include "lab/process.h"
#include "lab/state.h"
#include "lab/tc_filter.h"
#include "switching.skel.h"

namespace te::lab {
namespace {

struct DestroySkeleton {
  void operator()(switching* skeleton) const { switching::destroy(skeleton); }
};

std::string mode_file(const std::string& id, const Node& node) { return state_directory(id) + "/modes/" + node.name; }

Result<SwitchMode> read_mode(const std::string& id, const Node& node) {
  const std::string path = mode_file(id, node);
  if (!std::filesystem::exists(path)) return SwitchMode::kNormal;
  auto text = read_file(path);
  if (!text) return std::move(text).error();
  auto mode = parse_mode(*text);
  if (!mode) return with_context(std::move(mode).error(), path);
  return mode;
}

const bpf_program* program_of(const switching& loaded, SwitchMode mode) {
  if (mode == SwitchMode::kQpnHash) return loaded.progs.choose_by_qpn;
  if (mode == SwitchMode::kSpray) return loaded.progs.choose_at_random;
  return loaded.progs.answer_nothing;
}

Result<void> attach_program(const Fabric& fabric, std::size_t node, SwitchMode mode) {
  libbpf_set_print(nullptr);
  const std::unique_ptr<switching, DestroySkeleton> loaded(switching::open());
  if (!loaded) return errno_error("open the switching program");
  loaded->rodata->members = static_cast<__u32>(equal_cost_ports(fabric, node));
  loaded->rodata->seed = fabric.nodes[node].hash_seed;
  const int failed = switching::load(loaded.get());
  if (failed != 0) return errno_error("load the switching program", -failed);
  const int program = bpf_program__fd(program_of(*loaded, mode));
  for (const std::string& port : fabric_ports(fabric, node)) {
    auto attached = attach_tc(program, port, TcSide::kIngress);
    if (!attached) return attached;
  }
  return {};
}

Result<void> run_ip(const Fabric& fabric, const std::string& batch) {
  if (batch.empty()) return {};
  return run_program({"ip", fabric.is_v6() ? "-6" : "-4", "-batch", "-"}, batch);
}

/// In the switch's namespace, as all that follows.
Result<void> set_sysctls(SwitchMode mode) {
  for (const Sysctl& setting : mode_sysctls(mode)) {
    auto written = write_sysctl(setting.path, setting.value);
    if (!written) return written;
  }
  return {};
}

Result<void> leave_mode(const Fabric& fabric, std::size_t node, SwitchMode mode) {
  for (const std::string& port : fabric_ports(fabric, node)) {
    auto detached = detach_tc(port, TcSide::kIngress);
    if (!detached) return detached;
  }
  auto undone = run_ip(fabric, mode_undo_batch(fabric, node, mode));
  return undone ? set_sysctls(SwitchMode::kNormal) : std::move(undone);
}

Result<void> enter_mode(const Fabric& fabric, std::size_t node, SwitchMode mode) {
  auto routed = run_ip(fabric, mode_batch(fabric, node, mode));
  if (!routed) return routed;
  auto set = set_sysctls(mode);
  if (!set) return set;
  const bool has_program = chooses_ports(mode) || mode == SwitchMode::kSilent;
  return has_program ? attach_program(fabric, node, mode) : Result<void>();
}

Result<void> note_mode(const std::string& id, const Node& node, SwitchMode mode) {
  const std::string path = mode_file(id, node);
  if (mode != SwitchMode::kNormal) return replace_file(path, mode_name(mode));
  if (::unlink(path.c_str()) != 0 && errno != ENOENT) return errno_error("remove " + path);
  return {};
}

}  // namespace

Result<void> set_switch_mode(const std::string& id, const std::string& node, SwitchMode mode) {
  auto fabric = read_lab(id);
  if (!fabric) return std::move(fabric).error();
  auto index = find_switch(*fabric, node);
  if (!index) return std::move(index).error();
  if (chooses_ports(mode) && equal_cost_ports(*fabric, *index) == 1) {
    return Error{node + " has one way to each leaf: mode " + mode_name(mode) + " would change nothing"};
  }
  auto before = read_mode(id, fabric->nodes[*index]);
  if (!before) return std::move(before).error();
  auto entered = enter_netns(fabric->nodes[*index].netns);
  if (!entered) return entered;
  auto left = leave_mode(*fabric, *index, *before);
  if (!left) return left;
  auto normal = note_mode(id, fabric->nodes[*index], SwitchMode::kNormal);
  if (!normal) return normal;
  auto changed = enter_mode(*fabric, *index, mode);
  if (!changed) {
    // What was not reached cannot be undone, and what was must be.
    (void)run_program({"ip", fabric->is_v6() ? "-6" : "-4", "-force", "-batch", "-"},
                      mode_undo_batch(*fabric, *index, mode));
    (void)leave_mode(*fabric, *index, SwitchMode::kNormal);
    return changed;
  }
  return note_mode(id, fabric->nodes[*index], mode);
}

Result<std::vector<std::pair<std::string, SwitchMode>>> read_switch_modes(const std::string& id, const Fabric& fabric) {
  std::vector<std::pair<std::string, SwitchMode>> modes;
  for (const Node& node : fabric.nodes) {
    auto mode = read_mode(id, node);
    if (!mode) return std::move(mode).error();
    if (*mode != SwitchMode::kNormal) modes.emplace_back(node.name, *mode);
  }
  return modes;
}

}  // namespace te::lab
