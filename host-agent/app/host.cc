// SPDX-License-Identifier: Apache-2.0
#include "host-agent/app/host.h"

#include <spdlog/spdlog.h>

#include <algorithm>
#include <utility>

#include "common/os/clock.h"
#include "host-agent/core/messages.h"
#include "host-agent/core/pairing.h"

namespace te::agent {
namespace {

// Between two visits of the one who takes them; more than a ring buffer of port changes.
constexpr std::size_t kMaxEvents = 4096;
constexpr std::int64_t kSettlingNs = 1'000'000'000;
constexpr std::int64_t kAttachAgainNs = 10'000'000'000;

AttachMode attach_mode(AttachWish wish) {
  switch (wish) {
    case AttachWish::kTcx:
      return AttachMode::kTcx;
    case AttachWish::kClsact:
      return AttachMode::kClsact;
    case AttachWish::kAuto:
      break;
  }
  return AttachMode::kAuto;
}

const char* name_of(AttachMode mode) { return mode == AttachMode::kTcx ? "tcx" : "clsact"; }

}  // namespace

std::string pin_directory(const AgentConfig& config) {
  std::string name = config.node;
  std::replace(name.begin(), name.end(), '.', '+');
  return config.bpffs + "/roce-te/" + name;
}

BpfDatapathOptions datapath_options(const AgentConfig& config, NetNamespaces& namespaces) {
  return {.pin_directory = pin_directory(config),
          .in_each_netns = [&namespaces](const auto& work) { namespaces.run_in_each(work); }};
}

Result<std::unique_ptr<Host>> Host::open(const AgentConfig& config, NetNamespaces& namespaces) {
  auto datapath = BpfDatapath::open(datapath_options(config, namespaces));
  if (!datapath) return std::move(datapath).error();
  std::unique_ptr<Host> host(new Host(config, namespaces, *std::move(datapath)));
  host->check_ports(monotonic_ns());
  return host;
}

Host::Host(const AgentConfig& config, NetNamespaces& namespaces, BpfDatapath datapath)
    : config_(config),
      namespaces_(namespaces),
      datapath_(std::move(datapath)),
      qp_source_(make_qp_source(config.qp_source)) {
  set_tcx(sources_, config.attach, BpfDatapath::probe_permission(), BpfDatapath::probe_tcx());
}

/// What an earlier agent with another list of interfaces left on them, and what is left of interfaces that are gone.
void Host::release_others() {
  std::set<BpfDatapath::Place> kept;
  for (const NicPort& port : ports_) {
    if (!port.name.netns.empty() && namespaces_.number_of(port.name.netns) == 0)
      spdlog::warn("{} is not entered: programs that an earlier run attached there are taken off", port.name.netns);
    if (port.ifindex != 0 && port.sends_by.empty()) kept.insert({port.ifindex, namespaces_.number_of(port.name.netns)});
  }
  const auto released = datapath_.keep_only(kept);
  if (!released) spdlog::warn("programs of an earlier run may stay on other interfaces: {}", released.error().message);
  others_released_ = true;
}

void Host::attach_all() {
  std::string done;
  std::string failed;
  for (const NicPort& port : ports_) {
    const auto mode = attach(port);
    std::string& text = mode ? done : failed;
    if (!text.empty()) text += "; ";
    text += mode ? to_string(port.name) + ": " + name_of(*mode) : mode.error().message;
  }
  if (done.empty()) {
    note_source("tc", v1::Source::OFF, failed);
  } else {
    note_source("tc", v1::Source::ON, failed.empty() ? done : done + "; " + failed);
  }
}

Result<AttachMode> Host::attach(const NicPort& port) {
  const std::string& netns = port.name.netns;
  if (!port.sends_by.empty()) {
    return Error{"interface " + to_string(port.name) + " sends by " + port.sends_by +
                 ", which is in the list too: its packets are seen there, take it off the list"};
  }
  Result<AttachMode> mode = Error{"interface " + to_string(port.name) + " does not exist"};
  const auto entered = namespaces_.run_in(netns, [&] {
    if (port.ifindex == 0) return;
    mode = datapath_.attach(port.name.interface, attach_mode(config_.attach), namespaces_.number_of(netns));
  });
  if (!entered) return with_context(entered.error(), "interface " + port.name.interface);
  return mode;
}

void Host::leave(const std::string& netns) {
  spdlog::warn("network namespace {} ended: its interfaces are gone; restart the agent to enter another at that path",
               netns);
  const std::uint64_t number = namespaces_.number_of(netns);
  const auto entered = namespaces_.run_in(netns, [&] {
    for (const NicPort& port : ports_) {
      if (port.name.netns != netns || port.ifindex == 0) continue;
      // It may have gone by now, with all that was attached.
      if (auto detached = datapath_.detach(port.name.interface, number); !detached)
        spdlog::debug("{}", detached.error().message);
    }
  });
  if (!entered) spdlog::debug("{}", entered.error().message);
  attached_ns_ = 0;
}

void Host::check_ports(std::int64_t now_ns) {
  const bool first = ports_.empty();
  if (first) ports_ = ports_of(config_.interfaces);
  const std::vector<NicPort> before = ports_;
  const auto read = read_nic_ports(ports_, namespaces_);
  if (!read) spdlog::warn("{}", read.error().message);
  bool appeared = first;
  for (std::size_t i = 0; i < before.size(); ++i) {
    appeared |= ports_[i].ifindex != before[i].ifindex;
    if (first || ports_[i].up == before[i].up) continue;
    add_event(ports_[i].up ? "link_up" : "link_down").set_text(ports_[i].name.port_name());
    spdlog::info("{} is {}", to_string(ports_[i].name), ports_[i].up ? "up" : "down");
  }
  others_released_ &= !appeared;
  if (read && !others_released_) release_others();
  if (!appeared && now_ns - attached_ns_ < kAttachAgainNs) return;
  attached_ns_ = now_ns;
  attach_all();
}

void Host::read(FlowTable::Window window, std::int64_t now_ns) {
  const auto samples = datapath_.read_flows();
  ++counts_.readings;
  if (!samples) {
    ++counts_.reading_failures;
    spdlog::warn("{}", samples.error().message);
    return;
  }
  flows_.update(*samples, window, now_ns);
  steering_.observe(*samples);
  if (const auto losses = datapath_.losses()) losses_ = *losses;
  if (window == FlowTable::Window::kClose) {
    drop_idle_steering(now_ns);
    erase_idle(now_ns);
  }
  poll_queue_pairs(now_ns);
  if (paired_generation_ != flows_.generation()) pair();
  if (sources_.is_on("qp") && reuse_checked_ != steering_.generation()) drop_steering_of_reused_qps();
}

void Host::drop_idle_steering(std::int64_t now_ns) {
  constexpr std::int64_t kSecond = 1'000'000'000;
  for (const FlowKey& key : flows_.steered_and_silent(config_.steering_idle_ns, now_ns)) {
    const std::string reason = "no packet for " + std::to_string(config_.steering_idle_ns / kSecond) + " s";
    if (drop_steering(key, {reason, true})) ++counts_.steering_idle_dropped;
  }
}

void Host::drop_steering_of_reused_qps() {
  for (const FlowKey& key : qp_reuse_.check(flows_.records(), queue_pairs_)) {
    if (drop_steering(key, {"its local QPN belongs to another connection now", false}))
      ++counts_.steering_reused_dropped;
  }
  reuse_checked_ = steering_.generation();
}

bool Host::drop_steering(const FlowKey& key, Release why) {
  const FlowRecord* flow = flows_.find(key);
  const std::string reason = why.reason;
  if (!steering_.release(key, std::move(why))) return false;
  spdlog::info("steering of {} > {} QPN {} is let go: {}", key.source.to_string(), key.destination.to_string(),
               key.destination_qpn, reason);
  if (events_.size() >= kMaxEvents) return true;
  v1::AgentEvent& dropped = add_event("steering_dropped");
  *dropped.mutable_key() = to_message(key);
  if (flow != nullptr) dropped.set_old_port(flow->steer_port);
  dropped.set_text(reason);
  return true;
}

void Host::erase_idle(std::int64_t now_ns) {
  for (const FlowKey& key : flows_.idle(now_ns)) {
    if (steering_.wants(key)) continue;
    if (datapath_.erase_flow(key)) flows_.end(key);
  }
}

void Host::poll_queue_pairs(std::int64_t now_ns) {
  auto reading = qp_source_->poll(now_ns);
  note_source("qp", reading.state, reading.reason);
  if (reading.state != v1::Source::ON && !queue_pairs_.empty()) reading.table.emplace();
  if (!reading.table) return;
  queue_pairs_ = *std::move(reading.table);
  paired_generation_.reset();
}

void Host::pair() {
  const std::vector<FlowRecord> flows = flows_.records();
  for (const PairedFlow& flow : pair_flows(flows, queue_pairs_)) {
    flows_.set_qpns(flow.key, flow.local_qpn, flow.remote_qpn);
  }
  paired_generation_ = flows_.generation();
  reuse_checked_.reset();
}

bool Host::apply_steering(std::int64_t now_ns) {
  const std::vector<Steering> actions = steering_.due(now_ns);
  if (actions.empty()) return false;
  steered_ns_ = now_ns;
  std::size_t failed = 0;
  std::string reason;
  for (const Steering& action : actions) {
    const auto outcome = datapath_.set_steering(action.key, action.port);
    steering_.done(action, outcome, now_ns);
    ++(outcome ? counts_.steering_actions : counts_.steering_failures);
    if (!outcome && ++failed == 1) reason = outcome.error().message;
  }
  if (failed != 0) {
    spdlog::warn("{} of {} steering entries could not be changed, tried again later: {}", failed, actions.size(),
                 reason);
  }
  return true;
}

bool Host::is_settling(std::int64_t now_ns) const {
  if (now_ns - steered_ns_ >= kSettlingNs) return false;
  const auto programmed = steering_.programmed();
  return std::any_of(programmed.begin(), programmed.end(), [&](const Steering& steering) {
    const FlowRecord* flow = flows_.find(steering.key);
    return flow != nullptr && flow->rate_bps > 0 && flow->wire_port != steering.port;
  });
}

bool Host::drain_events() {
  bool wants_reading = false;
  counts_.kernel_events += datapath_.drain_events([&](const KernelEvent& event) {
    if (event.kind == KernelEvent::Kind::kNewFlow) wants_reading = true;
    if (event.kind != KernelEvent::Kind::kPortChanged) return;
    wants_reading = true;
    if (events_.size() >= kMaxEvents) return;
    v1::AgentEvent& moved = add_event("port_changed");
    *moved.mutable_key() = to_message(event.key);
    moved.set_old_port(event.old_port);
    moved.set_new_port(event.new_port);
  });
  return wants_reading;
}

std::optional<Host::WayOut> Host::way_out(const IpAddress& address) const {
  for (const NicPort& port : ports_) {
    const auto own = std::ranges::find(port.addresses, address, &NicAddress::address);
    if (own != port.addresses.end()) return WayOut{port.name.netns, own->ifindex};
  }
  return std::nullopt;
}

void Host::note_source(const std::string& name, v1::Source::State state, const std::string& reason) {
  if (!sources_.set(name, state, reason)) return;
  const std::string text = name + " is " + state_name(state) + (reason.empty() ? "" : ": " + reason);
  spdlog::info("{}", text);
  add_event("source_changed").set_text(text);
}

v1::AgentEvent& Host::add_event(const std::string& kind) {
  v1::AgentEvent& event = events_.emplace_back();
  event.set_wall_us(wall_us());
  event.set_kind(kind);
  return event;
}

}  // namespace te::agent
