// SPDX-License-Identifier: Apache-2.0
#include "host-agent/app/agent.h"

#include <spdlog/spdlog.h>
#include <unistd.h>

#include <algorithm>
#include <boost/asio/co_spawn.hpp>
#include <boost/asio/detached.hpp>
#include <boost/asio/redirect_error.hpp>
#include <boost/asio/use_awaitable.hpp>
#include <chrono>
#include <utility>

#include "common/os/clock.h"
#include "common/os/file.h"
#include "host-agent/app/role.h"
#include "host-agent/core/messages.h"

namespace te::agent {

namespace asio = boost::asio;

namespace {

constexpr std::int64_t kMillisecond = 1'000'000;
constexpr std::int64_t kNever = std::numeric_limits<std::int64_t>::max();
constexpr std::int64_t kDefaultIntervalMs = 500;  // until a controller says otherwise
constexpr std::int64_t kLeastIntervalMs = 50;
constexpr std::int64_t kMostIntervalMs = 60'000;
// News (a flow, a moved port) shall be with the controller at once, but a storm of it must not cost a core.
constexpr std::int64_t kLeastBetweenReadingsNs = 50 * kMillisecond;
constexpr std::int64_t kReadingShare = 20;  // early readings take at most a 20th of the time
constexpr std::chrono::milliseconds kBetweenEventWakes{20};

asio::steady_timer::time_point at(std::int64_t monotonic) {
  return asio::steady_timer::time_point(std::chrono::nanoseconds(monotonic));
}

v1::NicPort to_message(const NicPort& port) {
  v1::NicPort message;
  message.set_netns(port.name.netns);
  message.set_interface(port.name.port_name());
  message.set_ifindex(port.ifindex);
  for (const NicAddress& own : port.addresses) message.add_addresses(own.address.to_bytes());
  message.set_mtu(port.mtu_bytes);
  message.set_up(port.up);
  return message;
}

}  // namespace

Result<std::unique_ptr<Agent>> Agent::open(asio::io_context& io, AgentConfig config, Credentials credentials) {
  std::unique_ptr<Agent> agent(new Agent(io, std::move(config), std::move(credentials)));
  if (auto opened = agent->open_parts(); !opened) return std::move(opened).error();
  return agent;
}

Agent::Agent(asio::io_context& io, AgentConfig config, Credentials credentials)
    : io_(io),
      config_(std::move(config)),
      credentials_(std::move(credentials)),
      namespaces_(config_.interfaces),
      uplink_(io, config_.controllers, [this] { return credentials_.current(); },
              {.hello = [this] { return hello(); },
               .session_began = [this](const v1::HelloReply& reply) { session_began(reply); },
               .message = [this](const v1::ControllerMessage& message) { take(message); },
               .session_ended =
                   [this] {
                     for (const auto& [netns, prober] : probers_) prober->cancel_all();
                   }}),
      links_(io, config_.interfaces, namespaces_,
             [this](const v1::LinkUpdate& update) {
               v1::AgentMessage message;
               *message.mutable_links() = update;
               return uplink_.send(message);
             }),
      metrics_server_(io, [this] { return metrics_.text(); }),
      kernel_events_(io),
      event_pause_(io),
      reading_timer_(io),
      instance_(random_instance()),
      interval_ns_(kDefaultIntervalMs * kMillisecond) {}

Result<void> Agent::open_parts() {
  auto host = Host::open(config_, namespaces_);
  if (!host) return std::move(host).error();
  host_ = *std::move(host);
  // asio closes the descriptor that it waits on, so it gets one of its own.
  const int events = ::dup(host_->event_fd());
  if (events < 0) return errno_error("wait for kernel events");
  kernel_events_.assign(events);
  open_probers();
  const auto links = links_.open();
  host_->sources().set("links", links_.is_watching() ? v1::Source::ON : v1::Source::OFF,
                       links ? "" : links.error().message);
  if (auto dropped = namespaces_.keep_only_capabilities(kCapabilities); !dropped) return dropped;
  return config_.metrics ? metrics_server_.listen(*config_.metrics) : Result<void>();
}

void Agent::open_probers() {
  std::string problems;
  for (const NicName& nic : config_.interfaces) {
    if (probers_.contains(nic.netns)) continue;
    auto& prober = probers_[nic.netns];
    prober = std::make_unique<Prober>(io_, [this](const ProbeReport& report) { uplink_.result(to_message(report)); });
    Result<void> opened;
    const auto entered = namespaces_.run_in(nic.netns, [&] { opened = prober->open(); });
    if (entered && opened) continue;
    problems += (problems.empty() ? "" : "; ") + (entered ? opened : entered).error().message;
    prober->stop();
    prober.reset();
  }
  std::erase_if(probers_, [](const auto& item) { return !item.second; });
  host_->sources().set("probe", probers_.empty() ? v1::Source::OFF : v1::Source::ON, problems);
}

void Agent::leave_ended_namespaces() {
  for (const std::string& netns : namespaces_.ended()) {
    host_->leave(netns);
    links_.leave(netns);
    if (const auto prober = probers_.find(netns); prober != probers_.end())
      prober->second->stop("network namespace " + netns + " ended");
    namespaces_.leave(netns);
  }
}

void Agent::start() {
  reading(FlowTable::Window::kClose, monotonic_ns());
  for (const v1::Source& source : host_->sources().all()) {
    spdlog::info("source {}: {}{}{}", source.name(), state_name(source.state()), source.reason().empty() ? "" : ": ",
                 source.reason());
  }
  spdlog::info("ready node={} flows={} steered={}", config_.node, host_->flows().size(),
               host_->steering().programmed().size());
  asio::co_spawn(io_, reading_loop(), asio::detached);
  asio::co_spawn(io_, kernel_event_loop(), asio::detached);
  links_.start();
  asio::co_spawn(io_, uplink_.run(), asio::detached);
}

void Agent::stop() {
  stopped_ = true;
  uplink_.stop();
  for (const auto& [netns, prober] : probers_) prober->stop();
  links_.stop();
  metrics_server_.stop();
  kernel_events_.close();
  event_pause_.cancel();
  reading_timer_.cancel();
}

asio::awaitable<void> Agent::reading_loop() {
  std::int64_t next_ns = last_reading_ns_ + interval_ns_;
  while (!stopped_) {
    next_ns =
        std::min(next_ns, last_reading_ns_ + interval_ns_ + interval_ns_);  // the interval may have become shorter
    reading_timer_.expires_at(at(std::min(next_ns, early_reading_ns_)));
    boost::system::error_code woken;
    co_await reading_timer_.async_wait(asio::redirect_error(asio::use_awaitable, woken));
    const std::int64_t now_ns = monotonic_ns();
    if (stopped_) break;
    if (now_ns >= next_ns) {
      reading(FlowTable::Window::kClose, now_ns);
      next_ns = std::max(next_ns, now_ns - interval_ns_) + interval_ns_;
    } else if (now_ns >= early_reading_ns_) {
      reading(FlowTable::Window::kKeep, now_ns);
    }
  }
}

asio::awaitable<void> Agent::kernel_event_loop() {
  while (!stopped_) {
    boost::system::error_code failed;
    co_await kernel_events_.async_wait(asio::posix::stream_descriptor::wait_read,
                                       asio::redirect_error(asio::use_awaitable, failed));
    if (failed) co_return;
    if (host_->drain_events()) ask_early_reading();
    event_pause_.expires_after(kBetweenEventWakes);
    co_await event_pause_.async_wait(asio::redirect_error(asio::use_awaitable, failed));
  }
}

void Agent::reading(FlowTable::Window window, std::int64_t now_ns) {
  early_reading_ns_ = kNever;
  last_reading_ns_ = now_ns;
  if (window == FlowTable::Window::kClose) {
    leave_ended_namespaces();
    host_->check_ports(now_ns);
  }
  host_->read(window, now_ns);
  if (host_->apply_steering(now_ns) || host_->is_settling(now_ns)) ask_early_reading();
  report(window);
  update_metrics();
  reading_cost_ns_ = monotonic_ns() - now_ns;
}

void Agent::ask_early_reading() {
  const std::int64_t pause_ns = std::max(kLeastBetweenReadingsNs, kReadingShare * reading_cost_ns_);
  const std::int64_t due_ns = std::max(monotonic_ns(), last_reading_ns_ + pause_ns);
  if (due_ns >= early_reading_ns_) return;
  early_reading_ns_ = due_ns;
  reading_timer_.cancel();
}

v1::Hello Agent::hello() {
  v1::Hello message;
  message.set_protocol_version(kProtocolVersion);
  message.set_node(config_.node);
  message.set_software_version(TE_VERSION);
  message.set_role("host");
  message.set_instance(instance_);
  for (const v1::Source& source : host_->sources().all()) *message.add_sources() = source;
  sources_reported_ = host_->sources().generation();
  for (const NicPort& port : host_->ports()) {
    if (port.ifindex != 0) *message.add_ports() = to_message(port);
  }
  for (const Steering& steering : host_->steering().programmed()) *message.add_steering() = to_message(steering);
  return message;
}

void Agent::session_began(const v1::HelloReply& reply) {
  if (reply.report_interval_ms() != 0) {
    interval_ns_ =
        std::clamp<std::int64_t>(reply.report_interval_ms(), kLeastIntervalMs, kMostIntervalMs) * kMillisecond;
  }
  spdlog::info("session with a controller, reports every {} ms", interval_ns_ / kMillisecond);
  links_.session_began();
  host_->steering().begin_session();
  owes_all_flows_ = true;
  steering_reported_ = kNever;
  ask_early_reading();
}

void Agent::take(const v1::ControllerMessage& message) {
  switch (message.body_case()) {
    case v1::ControllerMessage::kProbeRequest:
      return take(message.probe_request());
    case v1::ControllerMessage::kSteering:
      return take(message.steering());
    case v1::ControllerMessage::kProbeCancel:
      for (const auto& [netns, prober] : probers_) prober->cancel(message.probe_cancel().id());
      return;
    default:
      spdlog::debug("a message of a kind that this version does not know");
  }
}

void Agent::take(const v1::ProbeRequest& request) {
  auto order = probe_order_from(request);
  const auto from = order ? host_->way_out(order->flow.source) : std::nullopt;
  const auto prober = from ? probers_.find(from->netns) : probers_.end();
  std::string refused;
  if (!order) {
    refused = order.error().message;
  } else if (!from) {
    refused = order->flow.source.to_string() + " is no address of this host";
  } else if (prober == probers_.end()) {
    refused = from->netns.empty() ? "probing is off on this host" : "probing is off in " + from->netns;
  }
  if (refused.empty()) {
    order->flow.ifindex = from->ifindex;
    return prober->second->start(*std::move(order));
  }
  uplink_.result(refused_probe(request, refused));
}

void Agent::take(const v1::SteeringSet& set) {
  std::vector<std::string> problems;
  const std::vector<Steering> entries = steering_from(set, problems);
  for (const std::string& problem : problems) spdlog::warn("steering entry ignored: {}", problem);
  if (!host_->steering().want(set.revision(), entries)) {
    spdlog::debug("steering revision {} is older than the one in force", set.revision());
    return;
  }
  if (host_->apply_steering(monotonic_ns())) ask_early_reading();
  report_steering();
}

void Agent::report(FlowTable::Window window) {
  for (v1::AgentEvent& event : host_->take_events()) uplink_.event(std::move(event));
  report_flows(window);
  report_steering();
  report_sources();
  uplink_.pump();
}

void Agent::report_flows(FlowTable::Window window) {
  const std::vector<FlowRecord> changes = host_->flows().changes(owes_all_flows_);
  // An update at the end of each window is also the sign of life.
  if (changes.empty() && window == FlowTable::Window::kKeep && !owes_all_flows_) return;
  if (!uplink_.has_session()) return;
  v1::AgentMessage message;
  v1::FlowUpdate& update = *message.mutable_flows();
  update.set_interval_ms(static_cast<std::uint32_t>(host_->flows().window_ns() / kMillisecond));
  update.set_kernel_events_lost(host_->losses().events);
  update.set_kernel_flows_lost(host_->losses().flows);
  update.set_complete(owes_all_flows_);
  for (const FlowRecord& flow : changes) *update.add_flows() = to_message(flow);
  if (!uplink_.send(message)) return;  // what changed stays marked as changed
  host_->flows().mark_reported();
  owes_all_flows_ = false;
}

void Agent::report_steering() {
  const std::uint64_t generation = host_->steering().generation();
  if (steering_reported_ == generation || !uplink_.has_session()) return;
  v1::AgentMessage message;
  *message.mutable_steering() = steering_report(host_->steering());
  if (uplink_.send(message)) steering_reported_ = generation;
}

void Agent::report_sources() {
  const std::uint64_t generation = host_->sources().generation();
  if (sources_reported_ == generation || !uplink_.has_session()) return;
  v1::AgentMessage message;
  *message.mutable_sources() = source_update(host_->sources());
  if (uplink_.send(message)) sources_reported_ = generation;
}

Prober::Counts Agent::prober_counts() const {
  Prober::Counts sum;
  for (const auto& [netns, prober] : probers_) {
    const Prober::Counts& counts = prober->counts();
    sum.sent += counts.sent;
    sum.lost += counts.lost;
    sum.answered += counts.answered;
    sum.unreachable += counts.unreachable;
    sum.unknown_answers += counts.unknown_answers;
  }
  return sum;
}

void Agent::update_metrics() {
  if (!config_.metrics) return;
  const Host::Counts& host = host_->counts();
  const Prober::Counts prober = prober_counts();
  AgentFigures figures{.readings = host.readings,
                       .reading_failures = host.reading_failures,
                       .kernel_events = host.kernel_events,
                       .kernel_events_lost = host_->losses().events,
                       .kernel_flows_lost = host_->losses().flows,
                       .unsteered_packets = host_->losses().unsteered_packets,
                       .flows_left_out = host_->flows().left_out(),
                       .steering_actions = host.steering_actions,
                       .steering_failures = host.steering_failures,
                       .steering_idle_dropped = host.steering_idle_dropped,
                       .steering_reused_dropped = host.steering_reused_dropped,
                       .probes_sent = prober.sent,
                       .probes_lost = prober.lost,
                       .probes_unreachable = prober.unreachable,
                       .probe_answers_unknown = prober.unknown_answers,
                       .flows = static_cast<double>(host_->flows().size()),
                       .steered_flows = static_cast<double>(host_->steering().programmed().size())};
  add_figures(uplink_, figures);
  add_figures(links_, figures);
  add_figures(credentials_, figures);
  metrics_.update(figures);
}

}  // namespace te::agent
