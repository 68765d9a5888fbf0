// SPDX-License-Identifier: Apache-2.0
#include "lab/marker.h"

#include <bpf/bpf.h>
#include <bpf/libbpf.h>
#include <net/if.h>

#include <cerrno>

#include "common/os/file.h"
#include "mark.skel.h"

namespace te::lab {

namespace {

struct DestroySkeleton {
  void operator()(mark* skeleton) const { mark::destroy(skeleton); }
};

}  // namespace

struct Marker::Program {
  std::unique_ptr<mark, DestroySkeleton> skeleton;
};

Marker::Marker(std::unique_ptr<Program> program) : program_(std::move(program)) {}
Marker::Marker(Marker&&) noexcept = default;
Marker& Marker::operator=(Marker&&) noexcept = default;
Marker::~Marker() = default;

Result<Marker> Marker::load(std::uint32_t mark_bytes) {
  libbpf_set_print(nullptr);
  auto program = std::make_unique<Program>();
  program->skeleton.reset(mark::open());
  if (!program->skeleton) return errno_error("open the congestion marking program");
  program->skeleton->rodata->mark_bytes = mark_bytes;
  const int failed = mark::load(program->skeleton.get());
  if (failed != 0) return errno_error("load the congestion marking program (needs root and kernel BTF)", -failed);
  return Marker(std::move(program));
}

Result<void> Marker::attach(const std::vector<std::string>& interfaces) const {
  for (const std::string& interface : interfaces) {
    const unsigned index = ::if_nametoindex(interface.c_str());
    if (index == 0) return errno_error("find interface " + interface);
    bpf_tc_hook hook{};
    hook.sz = sizeof hook;
    hook.ifindex = static_cast<int>(index);
    hook.attach_point = BPF_TC_EGRESS;
    const int made = bpf_tc_hook_create(&hook);
    if (made != 0 && made != -EEXIST) return errno_error("add clsact to " + interface, -made);
    bpf_tc_opts options{};
    options.sz = sizeof options;
    options.prog_fd = bpf_program__fd(program_->skeleton->progs.mark_congestion);
    const int attached = bpf_tc_attach(&hook, &options);
    if (attached != 0) return errno_error("attach congestion marking to " + interface, -attached);
  }
  return {};
}

}  // namespace te::lab
