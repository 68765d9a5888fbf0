// SPDX-License-Identifier: Apache-2.0
#include "host-agent/app/switch_agent.h"

#include <spdlog/spdlog.h>

#include <boost/asio/co_spawn.hpp>
#include <boost/asio/detached.hpp>
#include <boost/asio/redirect_error.hpp>
#include <boost/asio/use_awaitable.hpp>
#include <chrono>
#include <utility>

#include "host-agent/app/role.h"
#include "host-agent/core/messages.h"

namespace te::agent {

namespace asio = boost::asio;

namespace {

constexpr std::chrono::seconds kBetweenMetrics{1};

}  // namespace

Result<std::unique_ptr<SwitchAgent>> SwitchAgent::open(asio::io_context& io, AgentConfig config,
                                                       Credentials credentials) {
  std::unique_ptr<SwitchAgent> agent(new SwitchAgent(io, std::move(config), std::move(credentials)));
  if (auto opened = agent->links_.open(); !opened) return std::move(opened).error();
  agent->sources_.set("links", v1::Source::ON, "");
  if (agent->config_.metrics) {
    if (auto listening = agent->metrics_server_.listen(*agent->config_.metrics); !listening)
      return std::move(listening).error();
  }
  return agent;
}

SwitchAgent::SwitchAgent(asio::io_context& io, AgentConfig config, Credentials credentials)
    : io_(io),
      config_(std::move(config)),
      credentials_(std::move(credentials)),
      uplink_(io, config_.controllers, [this] { return credentials_.current(); },
              {.hello = [this] { return hello(); },
               .session_began =
                   [this](const v1::HelloReply&) {
                     spdlog::info("session with a controller");
                     links_.session_began();
                   },
               .message = [this](const v1::ControllerMessage& message) { refuse(message); },
               .session_ended = [] {}}),
      links_(io, config_.interfaces, namespaces_,
             [this](const v1::LinkUpdate& update) {
               v1::AgentMessage message;
               *message.mutable_links() = update;
               return uplink_.send(message);
             }),
      metrics_server_(io, [this] { return metrics_.text(); }),
      metrics_timer_(io),
      instance_(random_instance()) {}

void SwitchAgent::start() {
  spdlog::info("ready node={} role=switch links={} with_carrier={}", config_.node, links_.present(),
               links_.with_carrier());
  links_.start();
  if (config_.metrics) asio::co_spawn(io_, metrics_loop(), asio::detached);
  asio::co_spawn(io_, uplink_.run(), asio::detached);
}

void SwitchAgent::stop() {
  stopped_ = true;
  uplink_.stop();
  links_.stop();
  metrics_server_.stop();
  metrics_timer_.cancel();
}

v1::Hello SwitchAgent::hello() const {
  v1::Hello message;
  message.set_protocol_version(kProtocolVersion);
  message.set_node(config_.node);
  message.set_software_version(TE_VERSION);
  message.set_role("switch");
  message.set_instance(instance_);
  for (const v1::Source& source : sources_.all()) *message.add_sources() = source;
  return message;
}

void SwitchAgent::refuse(const v1::ControllerMessage& message) {
  const std::string reason = config_.node + "'s agent runs in role switch: it reports links, it does not ";
  if (message.has_probe_request()) {
    uplink_.result(refused_probe(message.probe_request(), reason + "probe"));
  } else if (message.has_steering()) {
    v1::AgentMessage answer;
    *answer.mutable_steering() = refused_steering(message.steering(), reason + "steer");
    uplink_.send(answer);
  }
}

asio::awaitable<void> SwitchAgent::metrics_loop() {
  while (!stopped_) {
    update_metrics();
    metrics_timer_.expires_after(kBetweenMetrics);
    boost::system::error_code woken;
    co_await metrics_timer_.async_wait(asio::redirect_error(asio::use_awaitable, woken));
  }
}

void SwitchAgent::update_metrics() {
  AgentFigures figures;
  add_figures(uplink_, figures);
  add_figures(links_, figures);
  add_figures(credentials_, figures);
  metrics_.update(figures);
}

}  // namespace te::agent
