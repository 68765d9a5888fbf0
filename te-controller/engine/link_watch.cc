// SPDX-License-Identifier: Apache-2.0
#include "te-controller/engine/link_watch.h"

#include <algorithm>
#include <utility>

#include "common/base/units.h"

namespace te {

using diagnosis::FlowLoss;
using diagnosis::LinkCondition;

namespace {

constexpr std::int64_t kLossLookNs = 1000 * kNsPerMs;
constexpr std::size_t kLossSeconds = 3;     // that losses are summed over
constexpr std::int64_t kLookRestNs = 2500;  // for each flow, six times what it takes: most is for what agents say
constexpr std::int64_t kProofNs = 500 * kNsPerMs;
constexpr std::int64_t kFirstProofRestNs = 500 * kNsPerMs;
constexpr std::int64_t kLongestProofRestNs = 30'000 * kNsPerMs;
constexpr int kLostIntervals = 2;
constexpr int kFirstIntervals = 2;  // of a session, until its rates are whole
constexpr std::uint32_t kProbesOfTrace = 2;
constexpr int kGreetings = 4;  // at a time

/// What the planner and the routing make of a condition. A host's own link is not drained: its flows have no other.
LinkState state_for(LinkCondition condition, bool of_host) {
  switch (condition) {
    case LinkCondition::kUnknown:
    case LinkCondition::kHealthy:
      return LinkState::kHealthy;
    case LinkCondition::kSuspect:
    case LinkCondition::kFailing:
    case LinkCondition::kFlapping:
      return of_host ? LinkState::kHealthy : LinkState::kDrained;
    case LinkCondition::kDown:
      return LinkState::kDown;
  }
  return LinkState::kHealthy;
}

/// When an end last counted packets; 0: not within its history.
std::int64_t last_active_ns(const FlowEnd& end) {
  for (std::size_t i = end.history.size(); i > 0; --i) {
    if (end.history[i - 1].rate_bps > 0) return end.history[i - 1].end_ns;
  }
  return 0;
}

}  // namespace

LinkWatch::LinkWatch(const Parts& parts, const ProbingOptions& options, std::int64_t report_interval_ns)
    : parts_(parts),
      interval_ns_(report_interval_ns),
      health_(*parts.fabric),
      tracer_(*parts.fabric, parts.prober->budget(), options) {}

bool LinkWatch::take_links(const std::string& node, const v1::LinkUpdate& update) {
  const auto id = parts_.fabric->find_node(node);
  if (!id) return false;
  bool news = false;
  for (const v1::LinkReport& report : update.links()) {
    const auto port = parts_.fabric->find_port(*id, report.interface());
    // In whatever namespace it is: an agent has no two ports of one name.
    if (port) news |= health_.carrier(*port, report.ifindex() != 0 && report.up() && report.carrier());
  }
  return news;
}

void LinkWatch::gone(const std::string& node, std::int64_t now_ns) {
  tracer_.disconnected(node);
  const auto id = parts_.fabric->find_node(node);
  if (!id) return;
  for (const PortId port : parts_.fabric->node(*id).ports) health_.no_word(port, now_ns);
}

Result<void> LinkWatch::take_result(const std::string& node, const v1::ProbeResult& result, std::int64_t now_ns) {
  auto outcome = tracer_.take_result(node, result);
  if (!outcome) return std::move(outcome).error();
  if (!*outcome) return {};
  take(**outcome, now_ns);
  return {};
}

void LinkWatch::take(const TraceOutcome& outcome, std::int64_t now_ns) {
  const TraceOrder& order = outcome.order;
  for (const LinkId link : outcome.proved) health_.proved(link, now_ns);
  const bool there = order.beyond != kNoId && outcome.silent == kNoId && !outcome.proved.empty();
  if (there) health_.silent(order.beyond, kProbesOfTrace, now_ns);  // it drops what is not answered behind it
  if (outcome.silent == kNoId) return;
  const auto flow = parse_flow_id(order.flow);
  if (flow && is_cut_off(flow->pair())) return;  // switches without a way to it are silent, or say so
  const bool asked = order.beyond == kNoId && ask_directly(order, outcome.silent, now_ns);
  if (!asked) health_.silent(outcome.silent, outcome.probes, now_ns);
}

/// Switches that have lost their route drop what they would have answered. Whether it is they, or the link in front of
/// them, a probe to their own address tells. Only of the first switch's links it is known that it goes over them.
bool LinkWatch::ask_directly(const TraceOrder& trace, LinkId silent, std::int64_t now_ns) {
  constexpr std::size_t kSecondLink = 1;
  const auto next = trace.way.size() > kSecondLink + 1 ? trace.way[kSecondLink + 1] : kNoId;
  if (next == kNoId || trace.way[kSecondLink] != silent) return false;
  const auto& addresses = parts_.fabric->port(parts_.fabric->link(silent).to_port).addresses;
  if (addresses.empty()) return false;
  TraceOrder order = trace;
  order.flow.set_destination(addresses.front().to_bytes());
  order.way.resize(kSecondLink + 1);
  order.ttls = {kSecondLink + 1};
  order.beyond = next;
  return tracer_.start(std::move(order), now_ns);
}

std::vector<LinkWatch::Change> LinkWatch::judge(std::int64_t now_ns) {
  tracer_.expire(now_ns);
  const auto rest_ns = static_cast<std::int64_t>(parts_.fleet->flows().size()) * kLookRestNs;
  if (now_ns - looked_ns_ >= std::max(interval_ns_ / 2, rest_ns)) {
    looked_ns_ = now_ns;
    look_at_flows(now_ns);
  }
  if (now_ns - losses_ns_ >= kLossLookNs) {
    losses_ns_ = now_ns;
    look_for_losses(now_ns);
  }
  if (now_ns - proof_ns_ >= kProofNs) {
    proof_ns_ = now_ns;
    ask_for_proof(now_ns);
    get_acquainted(now_ns);
  }
  std::vector<LinkCondition> before;
  for (LinkId link = 0; link < parts_.fabric->links().size(); ++link) before.push_back(status(link).condition);
  std::vector<Change> changes;
  for (const LinkId link : health_.judge(now_ns)) {
    Change change{.link = link, .before = before[link], .now = status(link), .paths = false};
    change.paths = parts_.fabric->set_link_state(link, state_of(link));
    changes.push_back(std::move(change));
  }
  if (drained_ == in_force_) return changes;
  std::set<LinkId> all_drained = std::exchange(in_force_, drained_);
  all_drained.insert(drained_.begin(), drained_.end());
  for (const LinkId link : all_drained) {
    if (!parts_.fabric->set_link_state(link, state_of(link))) continue;
    changes.push_back({.link = link, .before = status(link).condition, .now = status(link), .paths = true});
  }
  return changes;
}

LinkState LinkWatch::state_of(LinkId link) const {
  const Link& of = parts_.fabric->link(link);
  const bool of_host = parts_.fabric->node(of.from).is_host() || parts_.fabric->node(of.to).is_host();
  const LinkState state = state_for(status(link).condition, of_host);
  return state == LinkState::kHealthy && drained_.contains(link) ? LinkState::kDrained : state;
}

/// Makes tracks_ fit the fleet's flows.
void LinkWatch::follow_flows() {
  const FlowTable& flows = parts_.fleet->flows();
  if (tracks_as_of_ == flows.version()) return;
  tracks_as_of_ = flows.version();
  std::vector<Track> tracks;
  tracks.reserve(flows.size());
  auto old = tracks_.begin();
  for (const auto& [id, flow] : flows) {
    while (old != tracks_.end() && old->flow < id) ++old;
    Track& track = tracks.emplace_back();
    if (old != tracks_.end() && old->flow == id) track = std::move(*old);
    track.flow = id;
  }
  tracks_ = std::move(tracks);
}

void LinkWatch::look_at_flows(std::int64_t now_ns) {
  follow_flows();
  auto track = tracks_.begin();
  for (const auto& [id, flow] : parts_.fleet->flows()) look_at(flow, *track++, now_ns);
}

/// The sender goes on sending after the receiver has seen the last of it.
bool LinkWatch::does_not_arrive(const Flow& flow, const Track& track, std::int64_t now_ns) const {
  if (!flow.egress || !flow.ingress) return false;
  if (!flow.ingress->owner->connected || parts_.fleet->sender(flow) == nullptr) return false;
  // An agent that has just come back has no rates yet, nor what arrived meanwhile.
  const std::int64_t since_ns =
      std::max(track.arrived_ns, flow.ingress->owner->changed_ns + kFirstIntervals * interval_ns_);
  if (now_ns - since_ns < kLostIntervals * interval_ns_) return false;
  const auto& sent = flow.egress->history;
  return std::ranges::any_of(
      sent, [&](const RateSample& sample) { return sample.rate_bps > 0 && sample.begin_ns >= since_ns; });
}

bool LinkWatch::is_down(LinkId link) const { return link != kNoId && status(link).condition == LinkCondition::kDown; }

bool LinkWatch::is_cut_off(const AddressPair& pair) const {
  const auto source = parts_.fabric->find_address(pair.source);
  const auto destination = parts_.fabric->find_address(pair.destination);
  return (source && is_down(parts_.fabric->port(*source).out)) ||
         (destination && is_down(parts_.fabric->port(*destination).in));
}

bool LinkWatch::lost(const FlowId& flow) const {
  const auto found = std::ranges::lower_bound(tracks_, flow, {}, &Track::flow);
  return found != tracks_.end() && found->flow == flow && found->lost;
}

void LinkWatch::look_at(const Flow& flow, Track& track, std::int64_t now_ns) {
  if (flow.kind(now_ns) == FlowKind::kIdle) return;
  if (flow.ingress) track.arrived_ns = std::max(track.arrived_ns, last_active_ns(*flow.ingress));
  const ComposedPath& path = parts_.knowledge->way(flow.id.pair(), flow.wire_port());
  const bool lost = does_not_arrive(flow, track, now_ns);
  if (!lost && std::exchange(track.lost, false)) track.back_off_ns = 0;
  if (lost) {
    track.lost = true;
    if (!is_cut_off(flow.id.pair())) trace(flow, track, path, now_ns);
  } else if (path.reaches() && flow.ingress && now_ns - track.arrived_ns <= interval_ns_) {
    for (const LinkId link : path.links) health_.passed(link, now_ns);
  }
  count(track, flow, path, now_ns);
}

void LinkWatch::trace(const Flow& flow, Track& track, const ComposedPath& path, std::int64_t now_ns) {
  if (track.traced_ns != 0 && now_ns - track.traced_ns < track.back_off_ns) return;
  if (!start_trace(flow, path, now_ns)) return;
  track.traced_ns = now_ns;
  track.back_off_ns = std::clamp(2 * track.back_off_ns, kFirstProofRestNs, kLongestProofRestNs);
}

/// To all switches on the way, as far as it is known.
bool LinkWatch::start_trace(const Flow& flow, const ComposedPath& path, std::int64_t now_ns) {
  TraceOrder order{.node = flow.egress->node,
                   .flow = make_flow_key(flow.id, flow.egress->report.ifindex),
                   .flow_label = flow.egress->report.flow_label,
                   .port = flow.wire_port(),
                   .way = path.links,
                   .ttls = {}};
  for (std::uint32_t ttl = 1; ttl <= path.links.size(); ++ttl) {
    if (!parts_.fabric->node(parts_.fabric->link(path.links[ttl - 1]).to).is_host()) order.ttls.push_back(ttl);
  }
  return tracer_.start(std::move(order), now_ns);
}

/// A switch can only be missed once it has answered: flows are traced that pass one which never did.
void LinkWatch::get_acquainted(std::int64_t now_ns) {
  const auto is_new = [&](NodeId node) {
    if (parts_.fabric->node(node).is_host() || tracer_.answers(node)) return false;
    const auto greeted = greeted_ns_.find(node);
    return greeted == greeted_ns_.end() || now_ns - greeted->second >= kLongestProofRestNs;
  };
  bool any = false;
  for (NodeId node = 0; node < parts_.fabric->nodes().size() && !any; ++node) any = is_new(node);
  if (!any) return;
  int traces = 0;
  for (const auto& [id, flow] : parts_.fleet->flows()) {
    if (traces == kGreetings) return;
    if (flow.kind(now_ns) != FlowKind::kData || parts_.fleet->sender(flow) == nullptr) continue;
    const ComposedPath& path = parts_.knowledge->way(id.pair(), flow.wire_port());
    const auto leads_to_new = [&](LinkId link) { return is_new(parts_.fabric->link(link).to); };
    if (!path.reaches() || std::ranges::none_of(path.links, leads_to_new)) continue;
    if (!start_trace(flow, path, now_ns)) continue;
    for (const LinkId link : path.links) greeted_ns_[parts_.fabric->link(link).to] = now_ns;
    ++traces;
  }
}

/// Only where every switch chooses by the port: packets of one flow that go several ways overtake each other, which the
/// receiver cannot tell from losses.
void LinkWatch::count(Track& track, const Flow& flow, const ComposedPath& path, std::int64_t now_ns) {
  const auto goes_one_way = [&] {
    const PortId destination = parts_.fabric->link(path.links.back()).to_port;
    return parts_.trials->untrusted_on(path.links, destination) == kNoId;
  };
  if (!flow.ingress || !path.reaches() || !goes_one_way()) {
    track.way.clear();
    track.seconds.clear();
    return;
  }
  const FlowRecord& report = flow.ingress->report;
  const bool anew = track.way != path.links || report.packets < track.packets || report.psn_gaps < track.gaps ||
                    report.reordered_packets < track.reordered;
  if (!anew && now_ns - track.counted_ns < kLossLookNs) return;
  if (anew) {
    track.way = path.links;
    track.seconds.clear();
    track.settling = true;
  } else if (!std::exchange(track.settling, false)) {
    const std::uint64_t gaps = report.psn_gaps - track.gaps;
    const std::uint64_t late = std::min(gaps, report.reordered_packets - track.reordered);
    track.seconds.push_back({.links = {}, .packets = report.packets - track.packets, .gaps = gaps - late});
    if (track.seconds.size() > kLossSeconds) track.seconds.erase(track.seconds.begin());
  }
  track.packets = report.packets;
  track.gaps = report.psn_gaps;
  track.reordered = report.reordered_packets;
  track.counted_ns = now_ns;
}

void LinkWatch::look_for_losses(std::int64_t now_ns) {
  std::vector<FlowLoss> flows;
  bool any = false;
  for (const Track& track : tracks_) {
    FlowLoss sum;
    for (const FlowLoss& second : track.seconds) {
      sum.packets += second.packets;
      sum.gaps += second.gaps;
    }
    if (sum.packets == 0) continue;
    sum.links = track.way;
    any |= sum.gaps > 0;
    flows.push_back(std::move(sum));
  }
  for (const LinkId link : diagnosis::find_clean_links(flows, {})) health_.clean(link);
  if (any) health_.suspect(diagnosis::find_loss_suspects(flows, {}), now_ns);
}

void LinkWatch::forget_losses() {
  for (Track& track : tracks_) track.seconds.clear();
  health_.forget_losses();
}

std::optional<std::uint16_t> LinkWatch::port_towards(const ProbeTarget& target, LinkId link) {
  for (const std::uint16_t port : target.ports_in_use) {
    const ComposedPath way = parts_.knowledge->compose(target.pair, port);
    if (way.status == ComposedPath::Status::kBroken && way.links.back() == link) return port;
  }
  return parts_.knowledge->port_that_ends_at(target.pair, link);
}

/// Links that only a probe can show to be up again are probed with a port that leads there.
void LinkWatch::ask_for_proof(std::int64_t now_ns) {
  for (LinkId link = 0; link < parts_.fabric->links().size(); ++link) {
    if (!health_.needs_proof(link) || parts_.fabric->node(parts_.fabric->link(link).to).is_host()) continue;
    for (const auto& [pair, state] : parts_.prober->pairs()) {
      const ProbeTarget* target = parts_.prober->target(pair);
      if (target == nullptr) continue;
      const auto port = port_towards(*target, link);
      if (!port) continue;
      TraceOrder order{.node = target->node,
                       .flow = make_flow_key(target->flow, target->ifindex),
                       .flow_label = target->flow_label,
                       .port = *port,
                       .way = parts_.knowledge->compose(pair, *port).links,
                       .ttls = {}};
      order.ttls.push_back(static_cast<std::uint32_t>(order.way.size()));
      tracer_.start(std::move(order), now_ns);
      break;
    }
  }
}

}  // namespace te
