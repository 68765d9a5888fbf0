// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>

#include "topology/fabric.h"

namespace te {

/// A 2-tier Clos: every leaf has `hosts_per_leaf` hosts and `cables` cables to every spine. All at least 1; at most 254
/// hosts a leaf, 250 leaves, 250 spines, 4 cables.
struct ClosSpec {
  std::uint32_t leaves = 2;
  std::uint32_t hosts_per_leaf = 4;
  std::uint32_t spines = 4;
  std::uint32_t cables = 1;
  double host_bps = 400e9;
  double uplink_bps = 400e9;
};

/// Nodes h1.., leaf1.., spine1..; host j of leaf i (from 1) has 10.i.j.2 on eth0, the leaf's end 10.i.j.1. The leaf's
/// end of cable c to spine s has 172.(16+c).i.s, the spine's end 172.(20+c).i.s. Outside the limits above: broken
/// invariant.
[[nodiscard]] Fabric build_clos(const ClosSpec& spec);

}  // namespace te
