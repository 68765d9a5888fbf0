// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <compare>
#include <cstddef>
#include <cstdint>
#include <span>
#include <unordered_map>
#include <vector>

#include "topology/fabric.h"

namespace te {

/// Links from a source NIC port to a destination NIC port, first to last.
struct Path {
  std::vector<LinkId> links;
  auto operator<=>(const Path&) const = default;
};

/// All equal-cost paths in order of link ids, or the first of them. `total`: how many there are (exact up to 2^53);
/// `truncated`: there are more than `paths` holds. None: not reachable.
struct PathSet {
  std::vector<Path> paths;
  double total = 0;
  bool truncated = false;
};

/// Shortest-path routing (by hops; hosts never transit) as the switches do it: towards the NIC port that owns the
/// destination address. Parallel links are separate paths. A switch stops using its own links that are down; what
/// became unreachable behind them it keeps using until its routing protocol says otherwise, if it has one, and we do
/// not hear that: probes do. So a link that is down changes the groups of its own switch only, and ends the paths over
/// it. Computed per destination on demand and dropped when the fabric's paths change. The fabric must outlive it. Not
/// for use by two threads at once.
class Routing {
 public:
  explicit Routing(const Fabric& fabric) : fabric_(&fabric), version_(fabric.path_version()) {}

  [[nodiscard]] const Fabric& fabric() const { return *fabric_; }
  /// Equal-cost next links of a switch towards a host's NIC port, ascending; empty: no way. Valid until the next call
  /// after a change of the fabric.
  [[nodiscard]] std::span<const LinkId> next_links(NodeId at, PortId destination);
  /// The next link that a switch would use were its links not all down; kNoId: it has a way, or never had one.
  [[nodiscard]] LinkId broken_link(NodeId at, PortId destination);
  /// Paths between NIC ports of two different hosts, `limit` at most.
  [[nodiscard]] PathSet paths(PortId source, PortId destination, std::size_t limit = 1024);
  /// How many equal-cost paths there are, without listing them.
  [[nodiscard]] double count_paths(PortId source, PortId destination);

 private:
  struct Tree {                        ///< towards one destination port
    std::vector<std::uint32_t> begin;  ///< of each node's next links; one more than nodes
    std::vector<LinkId> next;
    std::vector<double> count;   ///< paths from each node
    std::vector<LinkId> broken;  ///< see broken_link()
  };
  const Tree& tree(PortId destination);
  [[nodiscard]] Tree build(PortId destination) const;

  const Fabric* fabric_;
  std::uint64_t version_;
  std::unordered_map<PortId, Tree> trees_;
};

}  // namespace te
