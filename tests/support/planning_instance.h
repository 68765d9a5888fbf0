// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <string>
#include <utility>
#include <vector>

#include "te-controller/traffic/planner.h"
#include "topology/fabric.h"
#include "topology/routing.h"

namespace te::traffic {

/// The same numbers everywhere (splitmix64).
class TestRandom {
 public:
  explicit TestRandom(std::uint64_t seed) : state_(seed) {}
  std::uint32_t below(std::uint32_t bound);

 private:
  std::uint64_t state_;
};

/// Elastic flows between hosts of a fabric, each on a path as ECMP would choose it, all equal-cost paths with a port
/// (49152 + the path's number).
class Instance {
 public:
  /// `ends`: numbers of source and destination host, from 1 (h1, h2, ...).
  Instance(const Fabric& fabric, const std::vector<std::pair<std::uint32_t, std::uint32_t>>& ends, TestRandom& random);

  PlanInput input;
  /// The candidate number (among its own) that a path of a flow is.
  [[nodiscard]] std::uint32_t candidate_of(std::size_t flow, PathIndex path) const;
  /// Puts a flow on its n-th candidate.
  void place(std::size_t flow, std::uint32_t candidate);
  /// Leaves elastic flows `share` of the cables between two nodes, either way.
  void narrow(const Fabric& fabric, const std::string& one, const std::string& other, double share);
};

/// h1 -> h(1+leaf size) -> h2 -> ...: hosts of the two leaves in turn, each connection `qps` times: the ring of
/// quickstart.
std::vector<std::pair<std::uint32_t, std::uint32_t>> alternating_ring(std::uint32_t hosts_per_leaf, std::uint32_t qps);
/// `count` pairs of different hosts of 1..hosts.
std::vector<std::pair<std::uint32_t, std::uint32_t>> random_pairs(std::uint32_t hosts, std::uint32_t count,
                                                                  TestRandom& random);
/// Flows over each link, of elastic flows at `path_of`.
std::vector<std::uint32_t> link_flows(const Fabric& fabric, const PlanInput& input,
                                      const std::vector<PathIndex>& path_of);
/// The paths once the first `moves` moves of a plan are made.
std::vector<PathIndex> after_moves(const PlanInput& input, const Plan& plan, std::size_t moves);
/// Rates of all flows at `path_of`; background left out.
std::vector<double> rates_at(const Fabric& fabric, const PlanInput& input, const std::vector<PathIndex>& path_of);

}  // namespace te::traffic
