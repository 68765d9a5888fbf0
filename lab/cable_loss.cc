// SPDX-License-Identifier: Apache-2.0
#include "lab/cable_loss.h"

#include <bpf/bpf.h>
#include <bpf/libbpf.h>
#include <net/if.h>

#include <cerrno>
#include <memory>

#include "cable.skel.h"
#include "common/os/file.h"
#include "common/os/unique_fd.h"
#include "lab/bpf/cable_loss.h"
#include "lab/degradation.h"
#include "lab/tc_filter.h"

namespace te::lab {
namespace {

struct DestroySkeleton {
  void operator()(cable* skeleton) const { cable::destroy(skeleton); }
};

std::string map_path(const std::string& bpffs) { return bpffs + "/cable_losses"; }

/// An end sends into the cable's interface: what end a sends comes in there, what end b sends goes out.
TcSide side_of(const CableEnd& end) { return end.is_a ? TcSide::kIngress : TcSide::kEgress; }

Result<__u32> key_of(const CableEnd& end) {
  const unsigned index = ::if_nametoindex(cable_name(end.link).c_str());
  if (index == 0) return errno_error("find cable " + cable_name(end.link));
  return __u32{2 * index + (end.is_a ? 0 : 1)};
}

}  // namespace

Result<void> start_loss(const std::string& bpffs, const CableEnd& end, double loss) {
  auto key = key_of(end);
  if (!key) return std::move(key).error();
  libbpf_set_print(nullptr);
  const std::unique_ptr<cable, DestroySkeleton> program(cable::open());
  if (!program) return errno_error("open the cable program");
  // One map for all cables of the lab, whoever loads the program.
  bpf_map__set_pin_path(program->maps.cable_losses, map_path(bpffs).c_str());
  const int failed = cable::load(program.get());
  if (failed != 0) return errno_error("load the cable program", -failed);
  const te_cable_loss entry{loss_threshold(loss), 0, 0};
  if (bpf_map_update_elem(bpf_map__fd(program->maps.cable_losses), &*key, &entry, BPF_ANY) != 0) {
    return errno_error("set the loss of cable " + cable_name(end.link));
  }
  const bpf_program* const cross = end.is_a ? program->progs.from_a : program->progs.from_b;
  return attach_tc(bpf_program__fd(cross), cable_name(end.link), side_of(end));
}

Result<void> end_loss(const std::string& bpffs, const CableEnd& end) {
  auto detached = detach_tc(cable_name(end.link), side_of(end));
  if (!detached) return detached;
  const UniqueFd map(bpf_obj_get(map_path(bpffs).c_str()));
  if (!map) return errno == ENOENT ? Result<void>() : errno_error("open " + map_path(bpffs));
  auto key = key_of(end);
  if (!key) return std::move(key).error();
  if (bpf_map_delete_elem(map.get(), &*key) != 0 && errno != ENOENT) {
    return errno_error("forget the loss of cable " + cable_name(end.link));
  }
  return {};
}

Result<LossCounts> read_loss(const std::string& bpffs, const CableEnd& end) {
  const UniqueFd map(bpf_obj_get(map_path(bpffs).c_str()));
  if (!map) return errno_error("open " + map_path(bpffs));
  auto key = key_of(end);
  if (!key) return std::move(key).error();
  te_cable_loss entry{};
  if (bpf_map_lookup_elem(map.get(), &*key, &entry) != 0) {
    return errno_error("read the loss of cable " + cable_name(end.link));
  }
  return LossCounts{entry.passed_packets, entry.lost_packets};
}

}  // namespace te::lab
