// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <vector>

#include "topology/fabric.h"

namespace te::traffic {

/// Index into a PathTable.
using PathIndex = std::uint32_t;
inline constexpr PathIndex kUnknownPath = 0xFFFFFFFFU;

/// Paths as flat arrays: the links of path p are links[begin[p]] .. links[begin[p + 1]].
class PathTable {
 public:
  /// Appends a path; the same links may be there twice.
  PathIndex add(std::span<const LinkId> links);
  [[nodiscard]] std::size_t size() const { return begin_.size() - 1; }
  [[nodiscard]] std::span<const LinkId> links(PathIndex path) const {
    return std::span<const LinkId>(links_).subspan(begin_[path], begin_[path + 1] - begin_[path]);
  }
  void reserve(std::size_t paths, std::size_t links);

 private:
  std::vector<std::uint32_t> begin_{0};
  std::vector<LinkId> links_;
};

/// Capacity in bits/s that each link has for elastic flows: none when down, else capacity less background (bits/s by
/// link; may be empty), at least 0.1 % of capacity so that a full link still orders flows.
[[nodiscard]] std::vector<double> elastic_capacity(const Fabric& fabric, std::span<const double> background_bps);

/// Max-min fair rates in bits/s of elastic flows by progressive filling (Bertsekas & Gallager, Data Networks, 6.5.2):
/// all rates grow together; a flow stops when a link of its path is full. `path_of`: the path of each flow;
/// kUnknownPath gets 0 and loads nothing. IP bits throughout.
[[nodiscard]] std::vector<double> max_min_rates(std::span<const double> capacity_bps, const PathTable& paths,
                                                std::span<const PathIndex> path_of);

/// Compares two rate vectors by their slowest, then next slowest, and so on: < 0 when `a` is worse, 0 when none differs
/// by more than `tolerance` (relative), > 0 when `a` is better. Same length.
[[nodiscard]] int compare_slowest_first(std::span<const double> a, std::span<const double> b, double tolerance);

}  // namespace te::traffic
