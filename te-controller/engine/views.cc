// SPDX-License-Identifier: Apache-2.0
#include "te-controller/engine/views.h"

#include <algorithm>
#include <utility>

namespace te {
namespace {

constexpr std::size_t kPortsListed = 32;  // of those known for a path

std::string_view provenance_of(const Flow& flow) {
  switch ((flow.egress ? *flow.egress : *flow.ingress).report.provenance) {
    case v1::PORT_FROM_QPNS:
      return "from QPNs";
    case v1::PORT_FROM_FLOW_LABEL:
      return "from flow label";
    case v1::PORT_SET_BY_US:
      return "set by us";
    case v1::PORT_SEEN:
      return "seen";
    default:
      return "unknown";
  }
}

std::string node_name(const Fabric& fabric, const IpAddress& address) {
  const auto port = fabric.find_address(address);
  return port ? fabric.node(fabric.port(*port).node).name : std::string();
}

}  // namespace

Views::PlanIndex Views::index_plan() const {
  PlanIndex index;
  if (!engine_->last_plan().job) return index;
  index.outcome = &engine_->last_plan();
  for (std::size_t i = 0; i < index.outcome->job->flows.size(); ++i) index.flow[index.outcome->job->flows[i]] = i;
  return index;
}

v1::FlowView Views::flow_view(const Flow& flow, const PlanIndex& plan, std::int64_t now_ns) {
  const Fabric& fabric = engine_->fabric();
  v1::FlowView view;
  view.set_id(flow.id.short_id());
  view.set_source(flow.id.source.to_string());
  view.set_destination(flow.id.destination.to_string());
  view.set_source_node(node_name(fabric, flow.id.source));
  view.set_destination_node(node_name(fabric, flow.id.destination));
  view.set_destination_qpn(static_cast<int>(flow.id.destination_qpn));
  if (const auto qpn = flow.source_qpn()) view.set_source_qpn(static_cast<int>(*qpn));
  view.set_kind(std::string(to_string(flow.kind(now_ns))));
  view.set_wire_port(flow.wire_port());
  view.set_provenance(std::string(provenance_of(flow)));
  view.set_steered(engine_->steered(flow));
  const ComposedPath path = engine_->knowledge().compose(flow.id.pair(), flow.wire_port());
  if (path.reaches() && !path.links.empty()) {
    view.add_path(fabric.node(fabric.link(path.links.front()).from).name);
    for (const LinkId link : path.links) view.add_path(fabric.node(fabric.link(link).to).name);
  }
  const FlowEnd* heard = engine_->fleet().heard_end(flow);
  view.set_stale(heard == nullptr);
  const FlowEnd& end = heard != nullptr ? *heard : flow.measured();
  const RateSample rates = end.history.empty() ? RateSample{} : end.history.back();
  view.set_rate_bps(rates.rate_bps);
  view.set_payload_bps(rates.payload_bps);
  view.set_ecn_ce_share(end.ecn_ce_share);
  const auto reverse = flow.reverse();
  if (reverse && engine_->fleet().find(*reverse) != nullptr) view.set_reverse_id(reverse->short_id());
  const FlowRecord& report = end.report;
  view.set_naks(static_cast<double>(report.nak_sequence + report.nak_rnr + report.nak_other));
  view.set_duplicates(static_cast<double>(report.duplicate_packets));
  view.set_reordered(static_cast<double>(report.reordered_packets));
  if (flow.egress) {
    view.set_packets_sent(static_cast<double>(flow.egress->report.packets));
    view.set_packets_steered(static_cast<double>(flow.egress->report.steered_packets));
  }
  const auto planned = plan.flow.find(flow.id);
  if (planned != plan.flow.end() && planned->second < plan.outcome->plan.rate_now_bps.size()) {
    view.set_predicted_bps(plan.outcome->plan.rate_now_bps[planned->second]);
  }
  return view;
}

Result<v1::FlowList> Views::flows(const std::string& node, std::int64_t now_ns) {
  const Fabric& fabric = engine_->fabric();
  const auto named = fabric.find_node(node);
  if (!node.empty() && !named) return Error{"no node of the fabric is called '" + node + "'; 'tectl nodes' lists them"};
  const bool crossing = named && !fabric.node(*named).is_host();
  const PlanIndex plan = index_plan();
  v1::FlowList list;
  for (const auto& [id, flow] : engine_->fleet().flows()) {
    const bool ends_there = node_name(fabric, id.source) == node || node_name(fabric, id.destination) == node;
    if (named && !crossing && !ends_there) continue;
    v1::FlowView view = flow_view(flow, plan, now_ns);
    const bool crosses = std::ranges::find(view.path(), node) != view.path().end();
    if (!crossing || crosses) *list.add_flows() = std::move(view);
  }
  return list;
}

Result<std::vector<IpAddress>> Views::addresses_of(const std::string& text) const {
  const Fabric& fabric = engine_->fabric();
  if (const auto address = IpAddress::parse(text)) {
    if (!fabric.find_address(*address)) return Error{"nobody in the fabric has the address " + text};
    return std::vector{*address};
  }
  const auto node = fabric.find_node(text);
  if (!node || !fabric.node(*node).is_host())
    return Error{"'" + text + "' is neither a host of the fabric nor an address"};
  std::vector<IpAddress> all;
  for (const PortId port : fabric.node(*node).ports) {
    all.insert(all.end(), fabric.port(port).addresses.begin(), fabric.port(port).addresses.end());
  }
  if (all.empty()) return Error{"the topology file gives no address of " + text};
  return all;
}

std::vector<v1::PathView> Views::path_views(const AddressPair& pair, std::int64_t now_ns) {
  const Fabric& fabric = engine_->fabric();
  const PairOptions options = options_of(engine_->routing(), engine_->knowledge(), pair);
  const std::vector<int> elastic = elastic_flows_by_link(now_ns);
  const bool choice = !engine_->knowledge().hops_to_learn(pair).empty();
  const auto progress = engine_->prober().pairs().find(pair);
  const bool probing =
      progress != engine_->prober().pairs().end() && progress->second.progress == PairProgress::kExploring;
  std::vector<v1::PathView> views;
  for (std::size_t i = 0; i < options.paths.size(); ++i) {
    v1::PathView view;
    double narrowest = 0;
    int fullest = 0;
    bool down = false;
    bool drained = false;
    for (const LinkId id : options.paths[i].links) {
      const Link& link = fabric.link(id);
      if (view.nodes().empty()) view.add_nodes(fabric.node(link.from).name);
      view.add_nodes(fabric.node(link.to).name);
      view.add_links(fabric.port_name(link.from_port));
      narrowest = view.links_size() == 1 ? link.capacity_bps : std::min(narrowest, link.capacity_bps);
      const bool of_host = fabric.node(link.from).is_host() || fabric.node(link.to).is_host();
      if (!of_host) fullest = std::max(fullest, elastic[id]);  // it is the same whatever the path
      down |= link.state == LinkState::kDown;
      drained |= link.state == LinkState::kDrained;
    }
    for (const auto* ports : {&options.ports[i].ports, &options.ports[i].maybe}) {
      for (const std::uint16_t port : *ports) {
        if (static_cast<std::size_t>(view.ports_size()) < kPortsListed) view.add_ports(port);
      }
    }
    view.set_capacity_bps(narrowest);
    view.set_elastic_flows(fullest);
    const bool reachable = !choice || !view.ports().empty();
    view.set_state(down        ? "down"
                   : drained   ? "drained"
                   : reachable ? "reachable"
                   : probing   ? "probing"
                               : "no port known");
    views.push_back(std::move(view));
  }
  return views;
}

Result<v1::PathList> Views::paths(const std::string& source, const std::string& destination, std::int64_t now_ns) {
  const auto from = addresses_of(source);
  if (!from) return from.error();
  const auto to = addresses_of(destination);
  if (!to) return to.error();
  std::optional<AddressPair> pair;  // of several addresses those that are in use
  for (const IpAddress& a : *from) {
    for (const IpAddress& b : *to) {
      if (a.family() != b.family()) continue;
      const AddressPair candidate{.source = a, .destination = b, .vlan = 0};
      if (!pair || engine_->prober().pairs().contains(candidate)) pair = candidate;
    }
  }
  if (!pair) return Error{source + " and " + destination + " have no addresses of one family"};
  v1::PathList list;
  list.set_source(pair->source.to_string());
  list.set_destination(pair->destination.to_string());
  for (v1::PathView& view : path_views(*pair, now_ns)) *list.add_paths() = std::move(view);
  list.set_ports_probed(static_cast<int>(engine_->knowledge().ports_tried(*pair)));
  const auto state = engine_->prober().pairs().find(*pair);
  if (list.paths().empty()) {
    list.set_note("there is no path between them");
  } else if (state == engine_->prober().pairs().end()) {
    list.set_note("no flow runs between them, so their ports are not probed");
  } else if (!state->second.problem.empty()) {
    list.set_note("probing: " + state->second.problem);
  } else if (state->second.silent) {
    list.set_note("probes get no answer");
  } else if (state->second.progress == PairProgress::kGaveUp) {
    list.set_note(std::to_string(state->second.unreached_paths) +
                  " paths have no port after as many tries as should be enough");
  }
  return list;
}

std::string Views::why(const Flow& flow, std::int64_t now_ns) const {
  std::string text;
  const int newest = engine_->ledger().moves().empty() ? 0 : engine_->ledger().moves().rbegin()->first;
  for (int number = newest; number > 0 && text.empty(); --number) {
    const v1::MoveView* move = engine_->ledger().find(number);
    if (move == nullptr) break;
    if (move->flow_id() != flow.id.short_id() || move->state() == "rolled_back" || move->state() == "failed") continue;
    if (engine_->steered(flow) && flow.wire_port() == move->to_port()) {
      text = "move " + std::to_string(number) + ": " + move->reason();
    }
  }
  if (text.empty() && engine_->steered(flow)) text = "steered by an earlier run of the controller";
  const bool known = engine_->knowledge().way(flow.id.pair(), flow.wire_port()).reaches();
  const std::string port = std::to_string(flow.wire_port());
  if (text.empty() && known) text = "ECMP hashes its own source port " + port + " onto this path";
  if (text.empty()) text = "its path is not known: no probe of its own source port " + port + " has shown it";
  if (!engine_->fabric().find_address(flow.id.source) || !engine_->fabric().find_address(flow.id.destination)) {
    text += "; one of its addresses is not in the topology file, so its path cannot be known";
  }
  if (flow.kind(now_ns) == FlowKind::kAck) text += "; it carries acknowledgements only";
  return text;
}

/// "yes", and where to; or why not, as the last plan saw it.
std::string Views::movable(const Flow& flow, std::int64_t now_ns) const {
  const std::string now = engine_->plan_builder().immovable(flow, now_ns);
  const PlanIndex plan = index_plan();
  const auto planned = plan.flow.find(flow.id);
  if (!now.empty() || planned == plan.flow.end()) return now.empty() ? "yes" : now;
  const traffic::PlanFlow& seen = plan.outcome->job->input.flows[planned->second];
  if (!seen.immovable.empty()) return seen.immovable;
  if (seen.candidate_count == 0) return "no port is known that leads another way";
  const auto& moves = plan.outcome->plan.moves;
  const auto move = std::ranges::find(moves, planned->second, &traffic::PlannedMove::flow);
  if (move == moves.end()) return "yes";
  const v1::MoveView record = engine_->record_of(*plan.outcome, *move);
  return "yes; the plan moves it to " + record.to_path() + " by port " + std::to_string(move->to_port) + ": " +
         record.reason();
}

Result<v1::Explanation> Views::explain(const std::string& id, std::int64_t now_ns) {
  const auto flow = engine_->fleet().find_by_beginning(id);
  if (!flow) return flow.error();
  const Flow* found = *flow;
  v1::Explanation explanation;
  *explanation.mutable_flow() = flow_view(*found, index_plan(), now_ns);
  explanation.set_current_option(-1);
  for (v1::PathView& view : path_views(found->id.pair(), now_ns)) {
    const bool current =
        std::ranges::equal(view.nodes(), explanation.flow().path()) &&
        (view.ports().empty() || std::ranges::find(view.ports(), found->wire_port()) != view.ports().end());
    if (current && explanation.current_option() < 0) explanation.set_current_option(explanation.options_size());
    *explanation.add_options() = std::move(view);
  }
  explanation.set_why(why(*found, now_ns));
  explanation.set_movable(movable(*found, now_ns));
  const auto& moves = engine_->ledger().moves();
  for (auto move = moves.rbegin(); move != moves.rend(); ++move) {
    if (move->second.flow_id() == found->id.short_id()) *explanation.add_history() = move->second;
  }
  return explanation;
}

v1::PlanView Views::plan() {
  v1::PlanView view;
  view.set_mode(std::string(to_string(engine_->mode())));
  const PlanOutcome& outcome = engine_->last_plan();
  if (!outcome.job) {
    view.add_notes("no planning cycle has run yet");
    return view;
  }
  view.set_slowest_now_bps(outcome.plan.slowest_now_bps);
  view.set_slowest_planned_bps(outcome.plan.slowest_goal_bps);
  view.set_computed_ms(outcome.computed_ms);
  for (const traffic::PlannedMove& move : outcome.plan.moves) *view.add_moves() = engine_->record_of(outcome, move);
  for (const std::string& note : outcome.plan.notes) view.add_notes(note);
  return view;
}

v1::MoveList Views::moves(std::size_t limit) {
  v1::MoveList list;
  const auto& moves = engine_->ledger().moves();
  for (auto move = moves.rbegin(); move != moves.rend() && static_cast<std::size_t>(list.moves_size()) < limit;
       ++move) {
    *list.add_moves() = move->second;
  }
  return list;
}

}  // namespace te
