// SPDX-License-Identifier: Apache-2.0
// The fabric as it is and as it is used: nodes, switches, links, and how evenly flows lie on them.
#include <algorithm>
#include <string>

#include "common/base/units.h"
#include "te-controller/engine/views.h"
#include "te-controller/traffic/imbalance.h"

namespace te {
namespace {

constexpr std::uint32_t kKinds = 4;  // of nodes

std::string_view to_text(v1::Source::State state) {
  switch (state) {
    case v1::Source::ON:
      return "on";
    case v1::Source::OFF:
      return "off";
    case v1::Source::NOT_SUPPORTED:
      return "not supported";
    default:
      return "unknown";
  }
}

bool takes_flows(const Link& link) { return link.state == LinkState::kHealthy || link.state == LinkState::kUnknown; }

/// Links between the same kinds of nodes, in the same direction, are of one tier.
std::uint32_t tier_of(const Fabric& fabric, const Link& link) {
  const auto kind = [&](NodeId node) { return static_cast<std::uint32_t>(fabric.node(node).kind); };
  return kind(link.from) * kKinds + kind(link.to);
}

std::string tier_name(std::uint32_t tier) {
  const auto name = [](std::uint32_t kind) { return std::string(to_string(static_cast<NodeKind>(kind))); };
  return name(tier / kKinds) + " -> " + name(tier % kKinds);
}

void show(const traffic::Spread& spread, v1::SpreadView& view) {
  view.set_least(spread.least);
  view.set_mean(spread.mean);
  view.set_most(spread.most);
  view.set_variation(spread.variation);
}

}  // namespace

v1::NodeList Views::nodes(std::int64_t now_ns) {
  v1::NodeList list;
  for (NodeId id = 0; id < engine_->fabric().nodes().size(); ++id) {
    const Node& node = engine_->fabric().node(id);
    v1::NodeView& view = *list.add_nodes();
    view.set_name(node.name);
    view.set_kind(std::string(to_string(node.kind)));
    if (!node.is_host()) {
      const SwitchKnowledge known = engine_->knowledge().switch_knowledge(id);
      view.set_ecmp(std::string(to_string(engine_->trials().manner(id))));
      view.set_ecmp_evidence(engine_->trials().evidence(id));
      view.set_epoch(static_cast<int>(known.epoch));
      view.set_known_hops(static_cast<int>(known.hops));
    }
    const FleetNode* agent = engine_->fleet().node(node.name);
    if (agent == nullptr) continue;
    view.set_agent_connected(agent->connected);
    view.set_agent_version(agent->hello.software_version());
    view.set_flows(static_cast<int>(agent->flows.size()));
    if (agent->connected && agent->reported_ns != 0) {
      view.set_report_age_s(static_cast<double>(now_ns - agent->reported_ns) / kNsPerS);
    }
    if (!agent->connected) continue;  // what it could observe is history
    for (const v1::Source& source : agent->hello.sources()) {
      v1::SourceView& shown = *view.add_sources();
      shown.set_name(source.name());
      shown.set_state(std::string(to_text(source.state())));
      shown.set_reason(source.reason());
    }
  }
  return list;
}

std::vector<int> Views::elastic_flows_by_link(std::int64_t now_ns) {
  std::vector<int> flows(engine_->fabric().links().size());
  for (const auto& [id, flow] : engine_->fleet().flows()) {
    if (flow.kind(now_ns) != FlowKind::kData) continue;
    const ComposedPath path = engine_->knowledge().compose(id.pair(), flow.wire_port());
    if (!path.reaches()) continue;
    for (const LinkId link : path.links) ++flows[link];
  }
  return flows;
}

std::vector<double> Views::load_by_link() {
  std::vector<double> load(engine_->fabric().links().size());
  for (const auto& [id, flow] : engine_->fleet().flows()) {
    const ComposedPath path = engine_->knowledge().compose(id.pair(), flow.wire_port());
    if (!path.reaches()) continue;
    for (const LinkId link : path.links) load[link] += flow.last_rates().rate_bps;
  }
  return load;
}

std::map<LinkId, std::string> Views::drains(std::int64_t now_ns) const {
  std::map<LinkId, v1::OverrideView> longest;  // a cable and its switch may both be drained
  for (const v1::OverrideView& one : engine_->overrides().all()) {
    if (one.kind() != Overrides::kDrain) continue;
    const auto links = links_to_drain(engine_->fabric(), one.target());
    if (!links) continue;
    for (const LinkId link : *links) {
      const auto [held, is_new] = longest.try_emplace(link, one);
      if (!is_new && lasts_longer(one, held->second)) held->second = one;
    }
  }
  std::map<LinkId, std::string> drains;
  for (const auto& [link, one] : longest) drains.emplace(link, describe(one, engine_->wall_s(now_ns)));
  return drains;
}

v1::LinkList Views::links(std::int64_t now_ns) {
  const Fabric& fabric = engine_->fabric();
  const std::vector<double> load = load_by_link();
  const std::vector<int> elastic = elastic_flows_by_link(now_ns);
  const std::map<LinkId, std::string> drained = drains(now_ns);
  v1::LinkList list;
  for (LinkId id = 0; id < fabric.links().size(); ++id) {
    const Link& link = fabric.link(id);
    v1::LinkView& view = *list.add_links();
    view.set_from(fabric.port_name(link.from_port));
    view.set_to(fabric.port_name(link.to_port));
    view.set_capacity_bps(link.capacity_bps);
    const diagnosis::LinkStatus& health = engine_->link_watch().status(id);
    view.set_state(std::string(to_string(health.condition)));
    if (health.since_ns != 0) view.set_since_s(engine_->wall_s(health.since_ns));
    view.set_evidence(health.evidence);
    view.set_takes_flows(takes_flows(link));
    if (const auto drain = drained.find(id); drain != drained.end()) view.set_drained(drain->second);
    view.set_elastic_flows(elastic[id]);
    view.set_load_bps(load[id]);
    view.set_utilisation(load[id] / link.capacity_bps);
  }
  return list;
}

v1::OverrideList Views::overrides() const {
  v1::OverrideList list;
  for (const v1::OverrideView& one : engine_->overrides().all()) *list.add_overrides() = one;
  return list;
}

v1::SwitchList Views::switches(std::int64_t now_ns) {
  const Fabric& fabric = engine_->fabric();
  const std::vector<int> elastic = elastic_flows_by_link(now_ns);
  v1::SwitchList list;
  for (NodeId id = 0; id < fabric.nodes().size(); ++id) {
    const Node& node = fabric.node(id);
    if (node.is_host()) continue;
    v1::SwitchView& view = *list.add_switches();
    view.set_name(node.name);
    view.set_kind(std::string(to_string(node.kind)));
    view.set_ecmp(std::string(to_string(engine_->trials().manner(id))));
    view.set_ecmp_evidence(engine_->trials().evidence(id));
    const FleetNode* agent = engine_->fleet().node(node.name);
    view.set_agent_connected(agent != nullptr && agent->connected);
    for (const PortId port : node.ports) {
      const LinkId out = fabric.port(port).out;
      if (out == kNoId) continue;
      view.set_links(view.links() + 1);
      view.set_elastic_flows(view.elastic_flows() + elastic[out]);
      if (takes_flows(fabric.link(out))) continue;
      const bool down = fabric.link(out).state == LinkState::kDown;
      down ? view.set_links_down(view.links_down() + 1) : view.set_links_drained(view.links_drained() + 1);
    }
  }
  return list;
}

v1::Imbalance Views::imbalance(std::int64_t now_ns) {
  const Fabric& fabric = engine_->fabric();
  const std::vector<double> load = load_by_link();
  const std::vector<int> elastic = elastic_flows_by_link(now_ns);
  std::vector<traffic::LinkUse> uses;
  for (LinkId id = 0; id < fabric.links().size(); ++id) {
    const Link& link = fabric.link(id);
    uses.push_back({.tier = tier_of(fabric, link),
                    .takes_flows = takes_flows(link),
                    .utilisation = load[id] / link.capacity_bps,
                    .flows = static_cast<std::uint32_t>(elastic[id])});
  }
  v1::Imbalance view;
  for (const traffic::TierUse& tier : traffic::imbalance(uses)) {
    v1::TierView& shown = *view.add_tiers();
    shown.set_tier(tier_name(tier.tier));
    shown.set_links(static_cast<int>(tier.links));
    shown.set_links_closed(static_cast<int>(tier.closed));
    if (tier.links == 0) continue;
    show(tier.utilisation, *shown.mutable_utilisation());
    show(tier.flows, *shown.mutable_flows());
    shown.set_fullest(fabric.link_name(static_cast<LinkId>(tier.fullest)));
  }
  if (engine_->last_plan().job) {
    const traffic::Plan& plan = engine_->last_plan().plan;
    view.set_slowest_now_bps(plan.slowest_now_bps);
    view.set_slowest_ideal_bps(plan.slowest_bound_bps);
    view.set_lost_share(traffic::lost_share(plan.slowest_now_bps, plan.slowest_bound_bps));
  }
  return view;
}

}  // namespace te
