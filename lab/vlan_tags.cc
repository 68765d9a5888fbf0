// SPDX-License-Identifier: Apache-2.0
#include "lab/vlan_tags.h"

#include <bpf/libbpf.h>

#include "common/os/file.h"
#include "lab/tc_filter.h"
#include "tag.skel.h"

namespace te::lab {

namespace {

struct DestroyTagSkeleton {
  void operator()(tag* skeleton) const { tag::destroy(skeleton); }
};

}  // namespace

struct VlanTags::Program {
  std::unique_ptr<tag, DestroyTagSkeleton> skeleton;
};

VlanTags::VlanTags(std::unique_ptr<Program> program) : program_(std::move(program)) {}
VlanTags::VlanTags(VlanTags&&) noexcept = default;
VlanTags& VlanTags::operator=(VlanTags&&) noexcept = default;
VlanTags::~VlanTags() = default;

Result<VlanTags> VlanTags::load(const std::vector<std::uint16_t>& vlans) {
  libbpf_set_print(nullptr);
  auto program = std::make_unique<Program>();
  program->skeleton.reset(tag::open());
  if (!program->skeleton) return errno_error("open the VLAN tag programs");
  for (std::size_t place = 0; place < vlans.size(); ++place) program->skeleton->rodata->vlans[place] = vlans[place];
  const int failed = tag::load(program->skeleton.get());
  if (failed != 0) return errno_error("load the VLAN tag programs", -failed);
  return VlanTags(std::move(program));
}

Result<void> VlanTags::attach(const std::string& interface) const {
  const auto& programs = program_->skeleton->progs;
  auto out = attach_tc(bpf_program__fd(programs.put_tags), interface, TcSide::kEgress, TcPlace::kAtTheWire);
  if (!out) return out;
  return attach_tc(bpf_program__fd(programs.take_tags), interface, TcSide::kIngress, TcPlace::kAtTheWire);
}

}  // namespace te::lab
