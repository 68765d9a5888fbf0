// SPDX-License-Identifier: Apache-2.0
// The first thing an operator reads: how all is, and what to worry about.
#include <algorithm>
#include <string>

#include "common/base/units.h"
#include "te-controller/engine/views.h"

namespace te {
namespace {

constexpr std::size_t kRespondersListed = 4;

}  // namespace

v1::Status Views::status(std::int64_t now_ns) {
  v1::Status status;
  status.set_mode(std::string(to_string(engine_->mode())));
  status.set_uptime_s(static_cast<double>(now_ns - engine_->started_ns()) / kNsPerS);
  status.set_nodes(static_cast<int>(engine_->fabric().nodes().size()));
  status.set_links(static_cast<int>(engine_->fabric().links().size()));
  for (const Node& node : engine_->fabric().nodes()) {
    const FleetNode* agent = engine_->fleet().node(node.name);
    const int connected = agent != nullptr && agent->connected ? 1 : 0;
    if (node.is_host()) {
      status.set_agents_expected(status.agents_expected() + 1);
      status.set_agents_connected(status.agents_connected() + connected);
    } else {
      status.set_switch_agents_connected(status.switch_agents_connected() + connected);
    }
  }
  int elastic = 0;
  int known = 0;
  std::size_t not_counted = 0;
  int steered = 0;
  double slowest = 0;
  double all_payload = 0;
  double all_rates = 0;
  for (const auto& [id, flow] : engine_->fleet().flows()) {
    const bool path_known = engine_->knowledge().way(id.pair(), flow.wire_port()).reaches();
    known += path_known ? 1 : 0;
    steered += engine_->steered(flow) ? 1 : 0;
    if (flow.kind(now_ns) != FlowKind::kData) continue;
    not_counted += path_known ? 0 : 1;
    const double payload = flow.last_rates().payload_bps;
    all_payload += payload;
    all_rates += flow.last_rates().rate_bps;
    slowest = elastic == 0 ? payload : std::min(slowest, payload);
    ++elastic;
  }
  status.set_flows(static_cast<int>(engine_->fleet().flows().size()));
  status.set_elastic_flows(elastic);
  status.set_flows_with_known_path(known);
  status.set_flows_steered(steered);
  status.set_slowest_flow_bps(slowest);
  status.set_moves_total(engine_->ledger().total());
  status.set_rollbacks_total(engine_->ledger().rolled_back());
  status.set_probes_sent(static_cast<int>(engine_->prober().counters().sent));
  status.set_probes_lost(static_cast<int>(engine_->prober().counters().lost));
  if (engine_->last_plan().job) {
    // The load model counts IP bits.
    const double share = all_rates > 0 ? all_payload / all_rates : 1;
    status.set_predicted_slowest_flow_bps(share * engine_->last_plan().plan.slowest_goal_bps);
    status.set_last_plan_ms(engine_->last_plan().computed_ms);
  }
  status.set_plan_cycles(engine_->plan_cycles());
  add_warnings(status, now_ns);
  if (not_counted > 0) {
    status.add_warnings(std::to_string(not_counted) +
                        " data flows take an unknown path and are not counted in the loads of links; 'tectl flows' "
                        "lists them, 'tectl explain' says more of one");
  }
  return status;
}

void Views::add_warnings(v1::Status& status, std::int64_t now_ns) const {
  for (const auto& [name, node] : engine_->fleet().nodes()) {
    if (!node.connected) continue;
    for (const v1::Source& source : node.hello.sources()) {
      const bool needed = source.name() == "tc" || source.name() == "probe";
      if (needed && source.state() != v1::Source::ON)
        status.add_warnings(name + ": " + source.name() + " is not on: " + source.reason());
    }
    if (node.kernel_flows_lost > 0) {
      status.add_warnings(name + ": " + std::to_string(node.kernel_flows_lost) +
                          " flows are not counted, the kernel's flow map is full");
    }
  }
  add_link_warnings(status);
  add_overrides(status, now_ns);
  add_switch_warnings(status);
  std::size_t incomplete = 0;
  std::size_t silent = 0;
  for (const auto& [pair, state] : engine_->prober().pairs()) {
    incomplete += state.progress == PairProgress::kGaveUp ? 1 : 0;
    silent += state.silent ? 1 : 0;
  }
  if (incomplete > 0)
    status.add_warnings(std::to_string(incomplete) +
                        " address pairs have equal-cost paths that no probed port reaches");
  if (silent > 0)
    status.add_warnings("probes of " + std::to_string(silent) +
                        " address pairs get no answer; do the switches send ICMP time exceeded?");
  add_refused_answers(status);
  if (const std::string why = engine_->hold(now_ns); engine_->mode() == Mode::kAct && !why.empty())
    status.add_warnings("only flows that must leave their way are moved: " + why);
}

void Views::add_overrides(v1::Status& status, std::int64_t now_ns) const {
  for (const v1::OverrideView& one : engine_->overrides().all()) {
    if (one.kind() == Overrides::kDrain || one.until_s() == 0)
      status.add_warnings(one.target() + " is " + describe(one, engine_->wall_s(now_ns)));
  }
}

void Views::add_link_warnings(v1::Status& status) const {
  const Fabric& fabric = engine_->fabric();
  for (LinkId link = 0; link < fabric.links().size(); ++link) {
    const diagnosis::LinkStatus& health = engine_->link_watch().status(link);
    const bool well = health.condition == diagnosis::LinkCondition::kHealthy ||
                      health.condition == diagnosis::LinkCondition::kUnknown;
    if (well || fabric.link(link).state == LinkState::kHealthy) continue;  // drained by an operator: said above
    status.add_warnings(fabric.link_name(link) + " is " + std::string(to_string(health.condition)) + ": " +
                        health.evidence);
  }
}

void Views::add_switch_warnings(v1::Status& status) const {
  for (NodeId id = 0; id < engine_->fabric().nodes().size(); ++id) {
    const std::string& name = engine_->fabric().node(id).name;
    const std::string evidence = engine_->trials().evidence(id);
    switch (engine_->trials().manner(id)) {
      case SwitchManner::kUnknown:
      case SwitchManner::kByPort:
        break;
      case SwitchManner::kSilent:
        status.add_warnings(name + " cannot be traced: " + evidence);
        break;
      case SwitchManner::kIgnoresPort:
      case SwitchManner::kVaries:
        status.add_warnings(name + " does not choose by the source port, flows there are not moved: " + evidence);
        break;
    }
  }
}

void Views::add_refused_answers(v1::Status& status) const {
  const auto& by = engine_->prober().counters().refused_by;
  std::size_t listed = 0;
  for (const auto& [address, count] : by) {
    if (++listed > kRespondersListed) break;
    const auto port = engine_->fabric().find_address(address);
    const std::string node = port ? engine_->fabric().node(engine_->fabric().port(*port).node).name : std::string();
    status.add_warnings("probe answers from " + address.to_string() + (node.empty() ? "" : " (" + node + ")") +
                        " fit no path of the topology file: " + std::to_string(count) + " so far; is it up to date?");
  }
  if (by.size() > kRespondersListed) {
    status.add_warnings("probe answers from " + std::to_string(by.size() - kRespondersListed) +
                        " more addresses fit no path of the topology file");
  }
}

}  // namespace te
