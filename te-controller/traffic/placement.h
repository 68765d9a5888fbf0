// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <string>
#include <vector>

#include "te-controller/traffic/load_model.h"
#include "te-controller/traffic/planner.h"

namespace te::traffic {

inline constexpr std::uint32_t kNoOption = 0xFFFFFFFFU;

/// A planning problem compiled from PlanInput: what may be moved (*units*, elastic flows with two ways or more, or one
/// that must be left), and what is fixed. Flat arrays: the search reads nothing else.
struct Problem {
  std::size_t flow_count = 0;
  std::vector<double> capacity_bps;        ///< by link, for elastic flows; 0: down
  std::vector<double> inverse_capacity;    ///< 1 / capacity, 0 where that is 0
  std::vector<std::uint32_t> fixed_flows;  ///< by link: flows that cross it wherever units are put
  std::vector<double> fixed_demand_bps;    ///< by link: their demand
  std::vector<PathIndex> start_path;  ///< by flow of PlanInput, elastic ones with a live known path; else kUnknownPath

  std::vector<std::uint32_t> unit_flow;    ///< by unit: index into PlanInput::flows
  std::vector<double> unit_demand_bps;     ///< most it can get whatever the placement (max-min over its fixed links)
  std::vector<std::uint32_t> unit_origin;  ///< its option now; kNoOption: it must leave
  std::vector<std::uint32_t> unit_option_begin;  ///< options of unit u: [begin[u], begin[u + 1])

  std::vector<Candidate> options;
  std::vector<std::uint32_t> option_link_begin;
  std::vector<LinkId> option_links;  ///< those that not all options of the unit share

  std::vector<std::string> notes;
  std::size_t unknown_path_flows = 0;

  [[nodiscard]] std::size_t units() const { return unit_flow.size(); }
  [[nodiscard]] std::span<const LinkId> varying(std::uint32_t option) const {
    return std::span<const LinkId>(option_links)
        .subspan(option_link_begin[option], option_link_begin[option + 1] - option_link_begin[option]);
  }
};

[[nodiscard]] Problem compile(const Fabric& fabric, const PlanInput& input);
/// True when no link of the path is down or drained.
[[nodiscard]] bool takes_flows(const Fabric& fabric, std::span<const LinkId> links);

/// Where each unit is, with the load of each link kept up to date.
class Placement {
 public:
  explicit Placement(const Problem& problem);

  [[nodiscard]] std::uint32_t option(std::uint32_t unit) const { return option_[unit]; }
  /// Takes the unit off its option (if any) and puts it on `option` (kNoOption: nowhere).
  void put(std::uint32_t unit, std::uint32_t option);
  [[nodiscard]] std::uint32_t flows(LinkId link) const { return flows_[link]; }
  [[nodiscard]] double demand_bps(LinkId link) const { return demand_[link]; }
  /// Units whose option varies over this link.
  [[nodiscard]] const std::vector<std::uint32_t>& units_on(LinkId link) const { return on_[link]; }
  /// The option that keeps its worst link lowest (flows / capacity after), then the sum of squares.
  [[nodiscard]] std::uint32_t least_loaded_option(std::uint32_t unit) const;
  /// Lowest share any link gives, bits/s: the rate of the slowest flow. 0 when no link is used.
  [[nodiscard]] double slowest_bps() const;
  /// The path of each flow of PlanInput: units where they are put, others at Problem::start_path.
  [[nodiscard]] std::vector<PathIndex> paths() const;
  [[nodiscard]] std::size_t moved() const;

 private:
  void count(std::uint32_t unit, std::uint32_t option, bool add);

  const Problem* problem_;
  std::vector<std::uint32_t> option_;
  std::vector<std::uint32_t> flows_;
  std::vector<double> demand_;
  std::vector<std::vector<std::uint32_t>> on_;
};

}  // namespace te::traffic
