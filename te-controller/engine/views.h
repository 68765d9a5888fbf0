// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <map>
#include <string>
#include <vector>

#include "common/base/result.h"
#include "te-controller/engine/engine.h"
#include "te/v1/api.pb.h"

namespace te {

/// What the API shows, read off the engine. `now_ns` is the time of the request.
class Views {
 public:
  /// `engine` outlives it.
  explicit Views(Engine& engine) : engine_(&engine) {}

  /// Without `version` and `topology`, which the program knows; its own warnings come after those of the engine.
  [[nodiscard]] v1::Status status(std::int64_t now_ns);
  [[nodiscard]] v1::NodeList nodes(std::int64_t now_ns);
  [[nodiscard]] v1::SwitchList switches(std::int64_t now_ns);
  [[nodiscard]] v1::LinkList links(std::int64_t now_ns);
  [[nodiscard]] v1::Imbalance imbalance(std::int64_t now_ns);
  /// `node`: only flows that this host sends or receives, or that cross this switch; empty: all. An Error: no such
  /// node.
  [[nodiscard]] Result<v1::FlowList> flows(const std::string& node, std::int64_t now_ns);
  /// Between hosts or addresses. An Error: it names nothing, or is ambiguous.
  [[nodiscard]] Result<v1::PathList> paths(const std::string& source, const std::string& destination,
                                           std::int64_t now_ns);
  /// `id`: a flow's id or a beginning of it. An Error: none, or more than one.
  [[nodiscard]] Result<v1::Explanation> explain(const std::string& id, std::int64_t now_ns);
  [[nodiscard]] v1::PlanView plan();
  [[nodiscard]] v1::OverrideList overrides() const;
  /// Newest first, `limit` at most.
  [[nodiscard]] v1::MoveList moves(std::size_t limit);

 private:
  struct PlanIndex {
    const PlanOutcome* outcome = nullptr;
    std::map<FlowId, std::size_t> flow;
  };
  [[nodiscard]] PlanIndex index_plan() const;
  [[nodiscard]] v1::FlowView flow_view(const Flow& flow, const PlanIndex& plan, std::int64_t now_ns);
  [[nodiscard]] std::vector<v1::PathView> path_views(const AddressPair& pair, std::int64_t now_ns);
  /// What operators drained, and how that reads.
  [[nodiscard]] std::map<LinkId, std::string> drains(std::int64_t now_ns) const;
  [[nodiscard]] std::vector<int> elastic_flows_by_link(std::int64_t now_ns);
  /// IP bits/s measured, of flows whose path is known.
  [[nodiscard]] std::vector<double> load_by_link();
  [[nodiscard]] Result<std::vector<IpAddress>> addresses_of(const std::string& text) const;
  [[nodiscard]] std::string movable(const Flow& flow, std::int64_t now_ns) const;
  [[nodiscard]] std::string why(const Flow& flow, std::int64_t now_ns) const;
  void add_warnings(v1::Status& status, std::int64_t now_ns) const;
  void add_link_warnings(v1::Status& status) const;
  void add_overrides(v1::Status& status, std::int64_t now_ns) const;
  void add_switch_warnings(v1::Status& status) const;
  void add_refused_answers(v1::Status& status) const;

  Engine* engine_;
};

}  // namespace te
