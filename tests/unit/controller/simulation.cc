// SPDX-License-Identifier: Apache-2.0
#include "tests/unit/controller/simulation.h"

#include <algorithm>

#include "te-controller/traffic/load_model.h"
#include "te-controller/traffic/planner.h"

namespace te::testing {
namespace {

constexpr std::int64_t kTickNs = 20 * kMs;
constexpr std::int64_t kLatencyNs = 2 * kMs;  // of a message between controller and agent
constexpr std::int64_t kPlanNs = 5 * kMs;
constexpr std::int64_t kEarlyUpdateNs = 50 * kMs;  // an agent tells a new port this late at most
constexpr std::uint32_t kIfindex = 7;
constexpr std::uint64_t kPacketsAGap = 10;  // of flows that are sprayed; all flows have a packet a millisecond
constexpr double kRepeatBps = 500e3;        // of a sender that repeats its window four times a second
constexpr std::int64_t kWallUs = 1'700'000'000'000'000;

}  // namespace

Simulation::Simulation(const SimulationSpec& spec)
    : spec_(spec),
      fabric_(build_clos(spec.clos)),
      routing_(fabric_),
      random_state_(spec.seed),
      hash_seed_(spec.seed * 7919),
      wall_us_(kWallUs) {
  for (std::uint32_t j = 1; j <= spec.clos.hosts_per_leaf; ++j) {  // leaf by leaf, so that the ring alternates
    for (std::uint32_t i = 1; i <= spec.clos.leaves; ++i) {
      const auto address = IpAddress::v4({10, static_cast<std::uint8_t>(i), static_cast<std::uint8_t>(j), 2});
      const auto port = fabric_.find_address(address);
      hosts_.push_back({.name = fabric_.node(fabric_.port(*port).node).name, .address = address, .steering = {}});
    }
  }
  std::uint32_t qpn = 0x100 + static_cast<std::uint32_t>(random() % 1000);
  for (std::size_t i = 0; i < hosts_.size(); ++i) {
    for (int q = 0; q < spec.qps; ++q) add_connection(i, (i + 1) % hosts_.size(), qpn);
  }
  engine_ = std::make_unique<Engine>(fabric_, spec.options, now_ns_, wall_us_ + now_ns_ / 1000);
  at(now_ns_, [this] { tick(); });
}

std::uint64_t Simulation::random() {  // splitmix64
  random_state_ += 0x9E3779B97F4A7C15ULL;
  std::uint64_t z = random_state_;
  z = (z ^ z >> 30U) * 0xBF58476D1CE4E5B9ULL;
  z = (z ^ z >> 27U) * 0x94D049BB133111EBULL;
  return z ^ z >> 31U;
}

void Simulation::add_connection(std::size_t from, std::size_t to, std::uint32_t& next_qpn) {
  const std::uint32_t local = next_qpn++;
  const std::uint32_t remote = next_qpn++;
  const auto port = static_cast<std::uint16_t>(0xC000 + random() % 0x4000);
  SimFlow data;
  data.id = {.source = hosts_[from].address, .destination = hosts_[to].address, .destination_qpn = remote};
  data.sender = from;
  data.receiver = to;
  data.source_qpn = local;
  data.source_port = port;
  SimFlow acks = data;
  acks.id = {.source = hosts_[to].address, .destination = hosts_[from].address, .destination_qpn = local};
  std::swap(acks.sender, acks.receiver);
  acks.source_qpn = remote;
  acks.data = false;
  flows_.push_back(data);
  flows_.push_back(acks);
}

std::uint16_t Simulation::wire_port(const SimFlow& flow) const {
  const auto& steering = hosts_[flow.sender].steering;
  const auto found = steering.find(flow.id);
  return found == steering.end() || !steering_works_ ? flow.source_port : found->second;
}

std::vector<LinkId> Simulation::trace(const IpAddress& from, const IpAddress& to, std::uint16_t port) {
  const PortId destination = *fabric_.find_address(to);
  if (!fabric_.node(fabric_.port(destination).node).is_host()) {  // a switch's own address
    return {fabric_.port(*fabric_.find_address(from)).out, fabric_.port(destination).in};
  }
  const Port& nic = fabric_.port(*fabric_.find_address(from));
  std::vector<LinkId> links{nic.out};
  while (fabric_.link(links.back()).to != fabric_.port(destination).node) {
    const NodeId at_node = fabric_.link(links.back()).to;
    const auto next = routing_.next_links(at_node, destination);
    if (next.empty()) {
      links.push_back(routing_.broken_link(at_node, destination));
      return links;
    }
    std::uint64_t hash = fnv1a(to.bytes(), fnv1a(from.bytes(), hash_seed_ + at_node)) ^ port;
    hash = (hash ^ hash >> 31U) * 0xBF58476D1CE4E5B9ULL;
    hash = (hash ^ hash >> 29U) * 0x94D049BB133111EBULL;
    if (spraying_.contains(at_node)) hash = random();
    links.push_back(next[(hash >> 33U) % next.size()]);
  }
  return links;
}

void Simulation::update_rates() {
  const double seconds = static_cast<double>(now_ns_ - accounted_ns_) * 1e-9;
  for (SimFlow& flow : flows_) {
    flow.sent_bits += flow.rate_bps * seconds;
    flow.received_bits += flow.arrives ? flow.rate_bps * seconds : 0;
  }
  accounted_ns_ = now_ns_;
  if (!rates_stale_) return;
  rates_stale_ = false;
  traffic::PathTable table;
  std::vector<traffic::PathIndex> path_of;
  for (SimFlow& flow : flows_) {
    const auto links = trace(flow.id.source, flow.id.destination, wire_port(flow));
    flow.arrives = fabric_.link(links.back()).state != LinkState::kDown;
    flow.sprayed = std::ranges::any_of(links, [&](LinkId link) {
      const Link& of = fabric_.link(link);
      return spraying_.contains(of.from) && !fabric_.node(of.to).is_host();
    });
    path_of.push_back(flow.data && flow.arrives ? table.add(links) : traffic::kUnknownPath);
  }
  for (std::size_t i = 0; i < flows_.size(); i += 2) {  // data, then its acknowledgements
    if (!flows_[i + 1].arrives) path_of[i] = traffic::kUnknownPath;
  }
  const auto rates = traffic::max_min_rates(traffic::elastic_capacity(fabric_, {}), table, path_of);
  for (std::size_t i = 0; i < flows_.size(); ++i) {
    const std::size_t data = flows_[i].data ? i : i - 1;
    const bool stalled = !flows_[data].arrives || !flows_[data + 1].arrives;
    const double data_bps = stalled ? kRepeatBps : rates[data];
    const bool acknowledges = flows_[data].arrives;
    flows_[i].rate_bps = paused_ ? 0 : flows_[i].data ? data_bps : acknowledges ? data_bps * 0.01 : 0;
  }
}

double Simulation::slowest_bps() {
  update_rates();
  double slowest = -1;
  for (const SimFlow& flow : flows_) {
    if (flow.data && (slowest < 0 || flow.rate_bps < slowest)) slowest = flow.rate_bps;
  }
  return slowest;
}

std::size_t Simulation::steered_flows() const {
  std::size_t sum = 0;
  for (const Host& host : hosts_) sum += host.steering.size();
  return sum;
}

void Simulation::set_paused(bool paused) {
  update_rates();
  paused_ = paused;
  rates_stale_ = true;
  update_rates();
}

void Simulation::run_for(std::int64_t ns) {
  const std::int64_t end_ns = now_ns_ + ns;
  while (!events_.empty() && events_.begin()->first <= end_ns) {
    const auto event = events_.extract(events_.begin());
    now_ns_ = std::max(now_ns_, event.key());
    event.mapped()();
  }
  now_ns_ = end_ns;
}

std::int64_t Simulation::run_until_slowest(double bps, std::int64_t hold_ns, std::int64_t limit_ns) {
  const std::int64_t begun_ns = now_ns_;
  std::int64_t good_since = -1;
  while (now_ns_ - begun_ns < limit_ns + hold_ns) {
    run_for(kTickNs / 2);
    if (slowest_bps() < bps) {
      good_since = -1;
    } else if (good_since < 0) {
      good_since = now_ns_;
    } else if (now_ns_ - good_since >= hold_ns) {
      return good_since - begun_ns;
    }
  }
  return -1;
}

void Simulation::connect_agents(std::int64_t within_ns) {
  for (std::size_t host = 0; host < hosts_.size(); ++host) {
    const auto after_ns = static_cast<std::int64_t>(random() % static_cast<std::uint64_t>(within_ns / kMs)) * kMs;
    at(now_ns_ + after_ns, [this, host] { connect_agent(host); });
  }
  if (spec_.switch_agents) at(now_ns_, [this] { connect_switch_agents(); });
}

void Simulation::connect_agent(std::size_t host) {
  Host& agent = hosts_[host];
  v1::Hello hello;
  hello.set_protocol_version(1);
  hello.set_node(agent.name);
  hello.set_software_version("simulated");
  for (const char* name : {"tc", "probe"}) {
    v1::Source& source = *hello.add_sources();
    source.set_name(name);
    source.set_state(v1::Source::ON);
  }
  for (const auto& [id, port] : agent.steering) {
    v1::SteeringEntry& entry = *hello.add_steering();
    *entry.mutable_key() = make_flow_key(id, kIfindex);
    entry.set_port(port);
  }
  if (!engine_->on_hello(agent.name, hello, now_ns_).accepted()) return;
  agent.announced = false;
  if (std::exchange(agent.connected, true)) return;  // its reports go on
  const auto loop = std::make_shared<std::function<void()>>();
  *loop = [this, host, loop_weak = std::weak_ptr(loop)] {
    const auto again = loop_weak.lock();
    if (!hosts_[host].connected) return;
    report(host, true);
    at(now_ns_ + spec_.options.report_interval_ms * kMs, [again] { (*again)(); });
  };
  at(now_ns_ + 10 * kMs, [loop] { (*loop)(); });
}

void Simulation::connect_switch_agents() {
  for (const Node& node : fabric_.nodes()) {
    if (node.is_host()) continue;
    v1::Hello hello;
    hello.set_protocol_version(1);
    hello.set_node(node.name);
    hello.set_role("switch");
    (void)engine_->on_hello(node.name, hello, now_ns_);
  }
  for (LinkId link = 0; link < fabric_.links().size(); ++link) report_link(link);
}

/// By the agent of the node that sends into it.
void Simulation::report_link(LinkId link) {
  const Link& of = fabric_.link(link);
  v1::AgentMessage message;
  v1::LinkReport& report = *message.mutable_links()->add_links();
  report.set_interface(fabric_.port(of.from_port).name);
  report.set_ifindex(1);
  report.set_up(true);
  report.set_carrier(of.state != LinkState::kDown);
  (void)engine_->on_message(fabric_.node(of.from).name, message, now_ns_);
}

void Simulation::set_cable(const std::string& a, const std::string& b, bool works) {
  update_rates();
  for (LinkId link = 0; link < fabric_.links().size(); ++link) {
    const std::string& from = fabric_.node(fabric_.link(link).from).name;
    const std::string& to = fabric_.node(fabric_.link(link).to).name;
    if (!(from == a && to == b) && !(from == b && to == a)) continue;
    fabric_.set_link_state(link, works ? LinkState::kHealthy : LinkState::kDown);
    const bool told = spec_.switch_agents || fabric_.node(fabric_.link(link).from).is_host();
    if (told) at(now_ns_ + kLatencyNs, [this, link] { report_link(link); });
  }
  rates_stale_ = true;
  update_rates();
}

void Simulation::set_spraying(const std::string& node, bool on) {
  update_rates();
  const NodeId id = *fabric_.find_node(node);
  if (on) {
    spraying_.insert(id);
  } else {
    spraying_.erase(id);
  }
  rates_stale_ = true;
  update_rates();
}

std::size_t Simulation::broken_flows() {
  update_rates();
  return static_cast<std::size_t>(std::ranges::count(flows_, false, &SimFlow::arrives));
}

void Simulation::disconnect_agent(std::size_t host) {
  hosts_[host].connected = false;
  engine_->on_gone(hosts_[host].name, now_ns_);
}

void Simulation::report(std::size_t host, bool whole_window) {
  update_rates();
  v1::AgentMessage message;
  v1::FlowUpdate& update = *message.mutable_flows();
  update.set_interval_ms(static_cast<std::uint32_t>(spec_.options.report_interval_ms));
  update.set_complete(!std::exchange(hosts_[host].announced, true));
  const double seconds = static_cast<double>(spec_.options.report_interval_ms) * 1e-3;
  for (SimFlow& flow : flows_) {
    if (flow.sender != host && flow.receiver != host) continue;
    const bool egress = flow.sender == host;
    v1::FlowReport& one = *update.add_flows();
    *one.mutable_key() = make_flow_key(flow.id, kIfindex);
    one.set_direction(egress ? v1::EGRESS : v1::INGRESS);
    one.set_source_port(egress ? flow.source_port : wire_port(flow));
    one.set_wire_port(wire_port(flow));
    if (spec_.qp_table) {
      one.set_local_qpn(egress ? flow.source_qpn : flow.id.destination_qpn);
      one.set_remote_qpn(egress ? flow.id.destination_qpn : flow.source_qpn);
    }
    double& window_bps = egress ? flow.sent_bps : flow.received_bps;
    if (whole_window) window_bps = std::exchange(egress ? flow.sent_bits : flow.received_bits, 0) / seconds;
    one.set_rate_bps(window_bps);
    one.set_payload_bps(flow.data ? window_bps * 0.98 : 0);
    one.set_packets(static_cast<std::uint64_t>(now_ns_ / kMs));
    if (whole_window && !egress && flow.sprayed) {
      flow.gaps += static_cast<std::uint64_t>(spec_.options.report_interval_ms) / kPacketsAGap;
    }
    one.set_psn_gaps(egress ? 0 : flow.gaps);
  }
  (void)engine_->on_message(hosts_[host].name, message, now_ns_);
}

void Simulation::tick() {
  engine_->tick(now_ns_, wall_us_ + now_ns_ / 1000);
  for (const Outgoing& outgoing : engine_->take_outgoing(now_ns_)) {
    at(now_ns_ + kLatencyNs, [this, outgoing] { deliver(outgoing); });
  }
  store(engine_->take_changes());
  if (auto job = engine_->begin_cycle(now_ns_)) {
    at(now_ns_ + kPlanNs, [this, job, engine = engine_.get()] {
      if (engine != engine_.get()) return;
      engine_->finish_cycle({.job = job, .plan = traffic::plan(*job->fabric, job->input), .computed_ms = 5}, now_ns_);
    });
  }
  at(now_ns_ + kTickNs, [this] { tick(); });
}

void Simulation::store(const PersistentChange& change) {
  if (change.mode) stored_.mode = change.mode;
  if (change.resume_mode) stored_.resume_mode = change.resume_mode;
  if (change.overrides) stored_.overrides = *change.overrides;
  for (const auto& [node, set] : change.steering) stored_.steering[node] = set;
  for (const auto& [number, move] : change.moves) {
    const auto place =
        std::ranges::find_if(stored_.moves, [&](const v1::MoveView& old) { return old.number() == number; });
    if (place == stored_.moves.end()) {
      stored_.moves.push_back(move);
    } else {
      *place = move;
    }
  }
}

void Simulation::deliver(const Outgoing& outgoing) {
  const auto host = static_cast<std::size_t>(
      std::ranges::find_if(hosts_, [&](const Host& h) { return h.name == outgoing.node; }) - hosts_.begin());
  if (!hosts_[host].connected) return;
  if (outgoing.message.has_probe_request()) probe(host, outgoing.message.probe_request());
  if (outgoing.message.has_steering()) steer(host, outgoing.message.steering());
}

void Simulation::probe(std::size_t host, const v1::ProbeRequest& request) {
  const FlowId flow = *parse_flow_id(request.flow());
  v1::AgentMessage message;
  v1::ProbeResult& result = *message.mutable_probe_result();
  result.set_id(request.id());
  result.set_done(true);
  const std::int64_t gap_ns = kSecond / request.probes_per_s();
  std::int64_t done_ns = now_ns_;
  std::int64_t first_ns = now_ns_;
  for (const std::uint32_t port : request.ports()) {
    const auto links = trace(flow.source, flow.destination, static_cast<std::uint16_t>(port));
    for (const std::uint32_t ttl : request.ttls()) {
      v1::ProbeAnswer& answer = *result.add_answers();
      answer.set_port(port);
      answer.set_ttl(ttl);
      // A switch that has no way on drops packets before it looks at their TTL.
      const bool broken = fabric_.link(links.back()).state == LinkState::kDown;
      const bool dropped = ttl > links.size() || (broken && ttl + (spec_.route_before_ttl ? 1 : 0) >= links.size());
      const Link& link = fabric_.link(links[std::min<std::size_t>(ttl, links.size()) - 1]);
      std::int64_t sent_ns = first_ns;
      for (std::uint32_t attempt = 1; attempt <= request.attempts() && answer.responder().empty(); ++attempt) {
        result.set_sent(result.sent() + 1);
        asked_[link.to].push_back(sent_ns);
        Icmp& icmp = icmp_[link.to];
        icmp.tokens =
            std::min(50.0, icmp.tokens + static_cast<double>(std::max<std::int64_t>(0, sent_ns - icmp.filled_ns)) *
                                             1e-9 * spec_.icmp_per_s);
        icmp.filled_ns = std::max(icmp.filled_ns, sent_ns);
        const bool lost =
            dropped || icmp.tokens < 1 || static_cast<double>(random() % 10000) < spec_.probe_loss * 10000;
        answer.set_attempts(attempt);
        if (lost) {
          result.set_lost(result.lost() + 1);
          sent_ns += std::int64_t{request.timeout_ms()} * kMs;
        } else {
          icmp.tokens -= 1;
          answer.set_responder(fabric_.port(link.to_port).addresses.front().to_bytes());
        }
      }
      done_ns = std::max(done_ns, sent_ns);
      first_ns += gap_ns;
    }
  }
  at(done_ns + kLatencyNs + 20 * kMs, [this, host, message] {
    if (hosts_[host].connected) (void)engine_->on_message(hosts_[host].name, message, now_ns_);
  });
}

void Simulation::steer(std::size_t host, const v1::SteeringSet& set) {
  update_rates();
  ++steering_sets_;
  hosts_[host].steering.clear();
  v1::AgentMessage message;
  message.mutable_steering()->set_revision(set.revision());
  for (const v1::SteeringEntry& entry : set.entries()) {
    hosts_[host].steering[*parse_flow_id(entry.key())] = static_cast<std::uint16_t>(entry.port());
    *message.mutable_steering()->add_programmed() = entry;
  }
  rates_stale_ = true;
  update_rates();
  if (std::exchange(dies_when_steered_, false)) {
    disconnect_agent(host);
    at(now_ns_ + kSecond, [this, host] { connect_agent(host); });
    return;
  }
  at(now_ns_ + kLatencyNs, [this, host, message] {
    if (hosts_[host].connected) (void)engine_->on_message(hosts_[host].name, message, now_ns_);
  });
  at(now_ns_ + kEarlyUpdateNs, [this, host] {
    if (hosts_[host].connected) report(host, false);
  });
}

void Simulation::restart_controller(const PersistentState& state, std::int64_t within_ns) {
  for (Host& host : hosts_) host.connected = false;
  run_for(2 * kEarlyUpdateNs);  // what was on its way is lost
  engine_ = std::make_unique<Engine>(fabric_, spec_.options, now_ns_, wall_us_ + now_ns_ / 1000);
  engine_->restore(state, now_ns_);
  run_for(spec_.options.report_interval_ms * kMs);  // report loops of the old sessions end
  connect_agents(within_ns);
}

std::size_t Simulation::busiest_switch_second() const {
  std::size_t most = 0;
  for (const auto& [node, unsorted] : asked_) {
    std::vector<std::int64_t> times = unsorted;
    std::ranges::sort(times);
    std::size_t first = 0;
    for (std::size_t last = 0; last < times.size(); ++last) {
      while (times[last] - times[first] >= kSecond) ++first;
      most = std::max(most, last - first + 1);
    }
  }
  return most;
}

}  // namespace te::testing
