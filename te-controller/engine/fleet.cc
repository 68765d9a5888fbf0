// SPDX-License-Identifier: Apache-2.0
#include "te-controller/engine/fleet.h"

#include <algorithm>
#include <utility>

#include "common/base/units.h"

namespace te {
namespace {

constexpr std::uint32_t kProtocolVersion = 1;

/// An agent repeats the rates of its last window in updates between windows: those are no new sample.
void remember(FlowEnd& end, const RateSample& sample) {
  const std::int64_t interval_ns = sample.end_ns - sample.begin_ns;
  if (!end.history.empty()) {
    const RateSample& last = end.history.back();
    const bool same = last.rate_bps == sample.rate_bps && last.payload_bps == sample.payload_bps;
    if (same && sample.end_ns - last.end_ns < interval_ns * 6 / 10) return;
  }
  end.history.push_back(sample);
}

/// Nothing new of a flow: its last rates still hold.
void repeat(FlowEnd& end, std::int64_t interval_ns, std::int64_t now_ns) {
  if (end.history.empty() || now_ns - end.history.back().end_ns < interval_ns * 9 / 10) return;
  RateSample sample = end.history.back();
  sample.begin_ns = now_ns - interval_ns;
  sample.end_ns = now_ns;
  remember(end, sample);
}

/// Share of CE marks among the packets since the last report; the old value when there were none.
double ce_share(const FlowEnd& before, const FlowRecord& report) {
  const std::uint64_t packets = report.packets - before.report.packets;
  const std::uint64_t marked = report.ecn_ce_packets - before.report.ecn_ce_packets;
  if (report.packets <= before.report.packets || marked > packets) return before.ecn_ce_share;
  return static_cast<double>(marked) / static_cast<double>(packets);
}

}  // namespace

v1::Source::State FleetNode::source(std::string_view name) const {
  for (const v1::Source& one : hello.sources()) {
    if (one.name() == name) return one.state();
  }
  return v1::Source::STATE_UNSPECIFIED;
}

Fleet::Fleet(const Fabric& fabric) : fabric_(&fabric) {
  for (const Node& node : fabric.nodes()) {
    if (node.is_host()) nodes_[node.name];
  }
}

Result<void> Fleet::may_connect(const std::string& node, const v1::Hello& hello) const {
  if (hello.protocol_version() != kProtocolVersion) {
    return Error{"protocol version " + std::to_string(hello.protocol_version()) +
                 " is not known here; this controller speaks " + std::to_string(kProtocolVersion)};
  }
  const auto id = fabric_->find_node(node);
  if (!id) return Error{"'" + node + "' is no node of the fabric; add it to the topology file"};
  if (fabric_->node(*id).is_host() == (hello.role() == "switch")) {
    return Error{"'" + node + "' is " + (fabric_->node(*id).is_host() ? "a host" : "a switch") +
                 " in the topology file, but its agent runs in role '" + hello.role() + "'"};
  }
  return {};
}

Result<void> Fleet::connect(const std::string& node, const v1::Hello& hello, std::int64_t now_ns) {
  auto accepted = may_connect(node, hello);
  if (!accepted) return accepted;
  FleetNode& state = nodes_[node];
  state.links.clear();
  state.connected = true;
  state.hello = hello;
  state.changed_ns = now_ns;
  state.reported_ns = 0;
  return {};
}

void Fleet::disconnect(const std::string& node, std::int64_t now_ns) {
  const auto found = nodes_.find(node);
  if (found == nodes_.end() || !found->second.connected) return;
  found->second.connected = false;
  found->second.changed_ns = now_ns;
}

Result<void> Fleet::take_sources(const std::string& node, const v1::SourceUpdate& update) {
  const auto found = nodes_.find(node);
  if (found == nodes_.end() || !found->second.connected)
    return Error{"sources of '" + node + "', which has no session"};
  *found->second.hello.mutable_sources() = update.sources();
  return {};
}

Result<void> Fleet::take_links(const std::string& node, const v1::LinkUpdate& update) {
  const auto found = nodes_.find(node);
  if (found == nodes_.end() || !found->second.connected) return Error{"links of '" + node + "', which has no session"};
  auto& links = found->second.links;
  if (update.complete()) links.clear();
  for (const v1::LinkReport& link : update.links()) {
    const std::pair port{link.netns(), link.interface()};
    if (!links.contains(port) && links.size() >= kMaxLinksPerNode) {
      return Error{"more than " + std::to_string(kMaxLinksPerNode) + " network interfaces"};
    }
    links.insert_or_assign(port, link);
  }
  return {};
}

const Flow* Fleet::find(const FlowId& id) const { return flows_.find(id); }

const FleetNode* Fleet::node(const std::string& name) const {
  const auto found = nodes_.find(name);
  return found == nodes_.end() ? nullptr : &found->second;
}

const FleetNode* Fleet::sender(const Flow& flow) const {
  return flow.egress && flow.egress->owner->connected ? flow.egress->owner : nullptr;
}

const FlowEnd* Fleet::heard_end(const Flow& flow) const {
  for (const std::optional<FlowEnd>* end : {&flow.ingress, &flow.egress}) {
    if (*end && (*end)->owner->connected) return &**end;
  }
  return nullptr;
}

bool Fleet::speaks_for(const std::string& node, const FlowEndId& end) const {
  const auto port = fabric_->find_address(end.egress ? end.id.source : end.id.destination);
  return !port || fabric_->node(fabric_->port(*port).node).name == node;  // addresses that nobody owns: pods, VFs
}

Result<Fleet::Change> Fleet::apply(const std::string& node, const v1::FlowUpdate& update, std::int64_t now_ns) {
  const auto news = read_flow_update(update);
  return news ? apply(node, *news, now_ns) : news.error();
}

Result<Fleet::Change> Fleet::apply(const std::string& node, const FlowNews& news, std::int64_t now_ns) {
  const auto found = nodes_.find(node);
  if (found == nodes_.end() || !found->second.connected)
    return Error{"a report of '" + node + "', which has no session"};
  ++updates_;
  Change change;
  FleetNode& state = found->second;
  state.reported_ns = now_ns;
  state.kernel_events_lost = news.kernel_events_lost;
  state.kernel_flows_lost = news.kernel_flows_lost;
  RateSample sample{.begin_ns = now_ns - std::int64_t{news.interval_ms} * kNsPerMs, .end_ns = now_ns};
  std::size_t named = 0;
  bool all_named = true;
  for (const ReportedFlow& reported : news.flows) {
    if (reported.ended) {
      all_named = false;  // it may have been counted before
      if (speaks_for(node, reported.end)) {
        end_flow(node, state, reported.end, change);
      } else {
        ++foreign_reports_;
      }
      continue;
    }
    sample.rate_bps = reported.rate_bps;
    sample.payload_bps = reported.payload_bps;
    named += take(node, state, reported, sample, change) ? 1 : 0;
  }
  all_named &= named == state.flows.size();
  if (!all_named) note_silent(node, state, news.complete, sample, change);
  return change;
}

/// What of the node's flows the update did not name.
void Fleet::note_silent(const std::string& node, FleetNode& state, bool complete, const RateSample& sample,
                        Change& change) {
  std::vector<FlowEndId> ended;
  for (const OwnedEnds::End& owned : state.flows) {
    FlowEnd& end = owned.egress ? *owned.flow->egress : *owned.flow->ingress;
    if (end.update == updates_) continue;
    if (complete) {
      ended.push_back(owned.id());
    } else {
      repeat(end, sample.end_ns - sample.begin_ns, sample.end_ns);
    }
  }
  std::ranges::sort(ended, {}, [](const FlowEndId& id) { return std::pair(id.id, id.egress); });
  for (const FlowEndId& id : ended) end_flow(node, state, id, change);
}

Flow* Fleet::claim(const std::string& node, FleetNode& state, const FlowEndId& end, std::int64_t now_ns) {
  if (!speaks_for(node, end)) {
    ++foreign_reports_;
    return nullptr;
  }
  Flow* flow = flows_.find(end.id);
  if (flow != nullptr) {
    const auto& owned = end.egress ? flow->egress : flow->ingress;
    if (owned && owned->node != node) {
      FleetNode& owner = nodes_[owned->node];
      if (owner.connected) {
        ++foreign_reports_;
        return nullptr;
      }
      owner.flows.erase(end);
    }
  }
  if (state.flows.size() >= kMaxFlowsPerNode) {
    ++flows_dropped_;
    return nullptr;
  }
  if (flow == nullptr) {
    flow = &flows_.add(end.id);
    flow->first_seen_ns = now_ns;
  }
  state.flows.add(end, *flow);
  return flow;
}

bool Fleet::take(const std::string& node, FleetNode& state, const ReportedFlow& reported, const RateSample& sample,
                 Change& change) {
  Flow* const known = state.flows.find(reported.end);
  Flow* const claimed = known != nullptr ? known : claim(node, state, reported.end, sample.end_ns);
  if (claimed == nullptr) return false;
  Flow& flow = *claimed;
  change.flows |= known == nullptr;
  change.ports |= known != nullptr && flow.wire_port() != reported.record.wire_port;
  auto& end = reported.end.egress ? flow.egress : flow.ingress;
  if (!end) end.emplace();
  if (known == nullptr) {
    end->node = node;
    end->owner = &state;
  }
  const bool first = end->update != updates_;
  end->ecn_ce_share = ce_share(*end, reported.record);
  end->report = reported.record;
  end->reported_ns = sample.end_ns;
  end->update = updates_;
  remember(*end, sample);
  if (sample.rate_bps > 0) flow.last_packet_ns = sample.end_ns;
  if (sample.payload_bps > 0) {
    change.flows |= sample.end_ns - flow.last_payload_ns > Flow::kRecentNs || flow.last_payload_ns == 0;
    flow.last_payload_ns = sample.end_ns;
  }
  return first;
}

void Fleet::end_flow(const std::string& node, FleetNode& state, const FlowEndId& end, Change& change) {
  state.flows.erase(end);
  Flow* const flow = flows_.find(end.id);
  if (flow == nullptr) return;
  auto& report = end.egress ? flow->egress : flow->ingress;
  if (!report || report->node != node) return;
  report.reset();
  change.flows = true;
  if (flow->egress || flow->ingress) return;
  change.ended.push_back(end.id);
  flows_.erase(end.id);
}

Fleet::Change Fleet::expire(std::int64_t now_ns) {
  Change change;
  for (auto& [name, state] : nodes_) {
    if (state.connected || state.flows.empty() || now_ns - state.changed_ns < kKeepLostNodeNs) continue;
    const auto gone = std::exchange(state.flows, {});
    for (const OwnedEnds::End& owned : gone) end_flow(name, state, owned.id(), change);
  }
  return change;
}

Result<const Flow*> Fleet::find_by_beginning(const std::string& id) const {
  const Flow* found = nullptr;
  for (const auto& [key, flow] : flows()) {
    if (id.empty() || !key.short_id().starts_with(id)) continue;
    if (found != nullptr) return Error{"more than one flow's id begins with '" + id + "'; write more of it"};
    found = &flow;
  }
  if (found == nullptr) return Error{"no flow's id begins with '" + id + "'; 'tectl flows' lists them"};
  return found;
}

}  // namespace te
