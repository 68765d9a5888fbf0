// SPDX-License-Identifier: Apache-2.0
#include "te-controller/app/controller.h"

#include <spdlog/spdlog.h>

#include <algorithm>
#include <boost/asio/co_spawn.hpp>
#include <boost/asio/detached.hpp>
#include <boost/asio/post.hpp>
#include <boost/asio/redirect_error.hpp>
#include <boost/asio/use_awaitable.hpp>
#include <chrono>
#include <memory>
#include <utility>

#include "common/os/clock.h"

namespace te {

namespace asio = boost::asio;

namespace {

constexpr std::chrono::milliseconds kTick{20};
constexpr std::size_t kLoggedMoves = 4096;
constexpr std::int64_t kRestFactor = 4;              // after a pump, of the time it took
constexpr std::int64_t kLongestRestNs = 20'000'000;  // then the tick pumps anyway

/// What an agent says, with the flow and the ports where it is about one.
std::string text_of(const Fabric& fabric, const v1::AgentEvent& event) {
  const auto flow = event.has_key() ? parse_flow_id(event.key()) : Result<FlowId>(Error{"no flow"});
  if (!flow) return event.text();
  std::string text = label_of(fabric, *flow);
  if (event.new_port() != 0)
    text += ", port " + std::to_string(event.old_port()) + " to " + std::to_string(event.new_port());
  return text + (event.text().empty() ? "" : ": " + event.text());
}

}  // namespace

Controller::Controller(asio::io_context& io, Engine& engine, AgentServer& agents, StoreWriter& store, EventLog& events)
    : io_(&io), engine_(&engine), agents_(&agents), store_(&store), events_(&events), timer_(io), pump_timer_(io) {}

Controller::~Controller() { stop(); }

void Controller::start() { asio::co_spawn(*io_, tick_loop(), asio::detached); }

void Controller::stop() {
  if (std::exchange(stopped_, true)) return;
  timer_.cancel();
  pump_timer_.cancel();
  planner_.join();
  store_->write(engine_->take_changes());
}

asio::awaitable<void> Controller::tick_loop() {
  while (!stopped_) {
    engine_->tick(monotonic_ns(), wall_us());
    pump();
    timer_.expires_after(kTick);
    boost::system::error_code aborted;
    co_await timer_.async_wait(asio::redirect_error(asio::use_awaitable, aborted));
  }
}

void Controller::wake() {
  if (std::exchange(pump_posted_, true)) return;
  if (const std::int64_t rest_ns = rest_until_ns_ - monotonic_ns(); rest_ns > 0) {
    pump_timer_.expires_after(std::chrono::nanoseconds(rest_ns));
    pump_timer_.async_wait([this](const boost::system::error_code& aborted) {
      if (!aborted) pump_soon();
    });
    return;
  }
  asio::post(*io_, [this] { pump_soon(); });  // after all that is waiting: many messages are answered together
}

void Controller::pump_soon() {
  pump_posted_ = false;
  if (!stopped_) pump();
}

void Controller::pump() {
  const std::int64_t begun_ns = monotonic_ns();
  for (const Outgoing& outgoing : engine_->take_outgoing(monotonic_ns()))
    agents_->send(outgoing.node, outgoing.message);
  for (const Engine::News& news : engine_->take_link_news())
    spdlog::log(news.is_warning ? spdlog::level::warn : spdlog::level::info, "{}", news.text);
  look_at_store();
  PersistentChange change = engine_->take_changes();
  log_moves(change);
  store_->write(std::move(change));
  plan();
  const std::int64_t end_ns = monotonic_ns();
  rest_until_ns_ = end_ns + std::min(kRestFactor * (end_ns - begun_ns), kLongestRestNs);
}

void Controller::look_at_store() {
  const bool waits = store_->problem().empty() && store_->is_writing();
  engine_->set_store_problem(waits ? "the last ones are being written" : store_->problem());
}

void Controller::plan() {
  auto job = engine_->begin_cycle(monotonic_ns());
  if (!job) return;
  asio::post(planner_, [this, job = std::move(job)] {
    const std::int64_t begun_ns = monotonic_ns();
    auto outcome = std::make_shared<PlanOutcome>();
    outcome->job = job;
    outcome->plan = traffic::plan(*job->fabric, job->input);
    outcome->computed_ms = static_cast<double>(monotonic_ns() - begun_ns) * 1e-6;
    asio::post(*io_, [this, outcome] {
      if (stopped_) return;
      look_at_store();
      engine_->finish_cycle(std::move(*outcome), monotonic_ns());
      wake();
    });
  });
}

void Controller::log_moves(const PersistentChange& change) {
  if (change.mode) spdlog::info("mode is now {}", to_string(*change.mode));
  for (const auto& [number, move] : change.moves) {
    std::string& before = logged_[number];
    if (before == move.state()) continue;
    before = move.state();
    const auto level =
        move.state() == "rolled_back" || move.state() == "failed" ? spdlog::level::warn : spdlog::level::info;
    spdlog::log(level, "move {} ({}, port {} to {}, {} to {}) {}: {}", number, move.flow(), move.from_port(),
                move.to_port(), move.from_path().empty() ? "?" : move.from_path(), move.to_path(), move.state(),
                move.outcome().empty() ? move.reason() : move.outcome());
  }
  while (logged_.size() > kLoggedMoves) logged_.erase(logged_.begin());
}

v1::HelloReply Controller::on_hello(const std::string& node, const v1::Hello& hello) {
  v1::HelloReply reply = engine_->on_hello(node, hello, monotonic_ns());
  if (reply.accepted()) {
    for (const v1::Source& source : hello.sources()) {
      if (source.state() != v1::Source::ON)
        spdlog::info("agent {}: source {} is not on: {}", node, source.name(), source.reason());
    }
  }
  wake();
  return reply;
}

Result<void> Controller::on_message(const std::string& node, const v1::AgentMessage& message) {
  if (message.has_event()) {
    const v1::AgentEvent& event = message.event();
    spdlog::debug("agent {}: {} {}", node, printable(event.kind()), printable(event.text()));
    events_->add(node, printable(event.kind()), printable(text_of(engine_->fabric(), event)), wall_us());
  }
  auto taken = engine_->on_message(node, message, monotonic_ns());
  wake();
  return taken;
}

Result<void> Controller::on_flows(const std::string& node, const FlowNews& news) {
  auto taken = engine_->on_flows(node, news, monotonic_ns());
  wake();
  return taken;
}

void Controller::on_gone(const std::string& node) {
  engine_->on_gone(node, monotonic_ns());
  wake();
}

}  // namespace te
