// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <optional>
#include <string>

#include "te/v1/agent.pb.h"
#include "topology/fabric.h"

namespace te {

/// A Clos fabric whose hosts send to the same host of the next leaf, in rings, over QP pairs. Host `n` counts from 0.
class BenchTraffic {
 public:
  static constexpr std::uint32_t kHostsPerLeaf = 50;
  static constexpr std::uint32_t kSpines = 16;

  /// `hosts`: a multiple of kHostsPerLeaf. `flows_per_host`: a multiple of 4, for of each QP pair a host sees both
  /// directions, and it has peers on both sides.
  BenchTraffic(std::uint32_t hosts, std::uint32_t flows_per_host);

  [[nodiscard]] std::uint32_t hosts() const { return hosts_; }
  [[nodiscard]] std::uint32_t flows_per_host() const { return 4 * qp_pairs_; }
  /// In the fabric, each counted once though two hosts report it.
  [[nodiscard]] std::uint32_t flows() const { return 2 * qp_pairs_ * hosts_; }
  /// As an operator would write it.
  [[nodiscard]] std::string topology_yaml() const;
  [[nodiscard]] static std::string name(std::uint32_t host) { return "h" + std::to_string(host + 1); }
  [[nodiscard]] v1::AgentMessage hello(std::uint32_t host) const;
  /// Every flow the host sees, with the counters of its first second.
  [[nodiscard]] v1::AgentMessage first_report(std::uint32_t host) const;
  /// What switches would answer: each port of a pair leads over the spine that a hash of all three names.
  [[nodiscard]] v1::AgentMessage answer(const v1::ProbeRequest& request) const;

 private:
  std::uint32_t hosts_;
  std::uint32_t qp_pairs_;  // of a host as the one that sends data
  Fabric fabric_;
};

/// The same flows after another interval, each with counters and rates of its own. `round` counts reports.
void advance(v1::FlowUpdate& update, std::uint32_t round);

}  // namespace te
