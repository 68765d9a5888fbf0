// SPDX-License-Identifier: Apache-2.0
#include "lab/marker.h"

#include <bpf/libbpf.h>

#include "common/os/file.h"
#include "lab/tc_filter.h"
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
    auto attached = attach_tc(bpf_program__fd(program_->skeleton->progs.mark_congestion), interface, TcSide::kEgress);
    if (!attached) return with_context(std::move(attached).error(), "congestion marking");
  }
  return {};
}

}  // namespace te::lab
