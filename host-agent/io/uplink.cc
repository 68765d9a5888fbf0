// SPDX-License-Identifier: Apache-2.0
#include "host-agent/io/uplink.h"

#include <spdlog/spdlog.h>

#include <boost/asio/co_spawn.hpp>
#include <boost/asio/detached.hpp>
#include <boost/asio/redirect_error.hpp>
#include <boost/asio/use_awaitable.hpp>
#include <chrono>
#include <utility>

#include "common/os/clock.h"

namespace te::agent {

namespace asio = boost::asio;

namespace {

constexpr std::int64_t kFirstRetryNs = 200'000'000;
constexpr std::int64_t kMostRetryNs = 5'000'000'000;
// A session that is broken again and again, by an agent of the same name for one, must not be opened ever faster.
constexpr std::int64_t kProvenSessionNs = 5'000'000'000;
constexpr std::chrono::seconds kHelloLimit{10};
// A controller with nothing to say sends nothing; TCP keep-alive finds out when it is gone.
constexpr std::chrono::hours kIdleLimit{1};

}  // namespace

Uplink::Uplink(asio::io_context& io, std::vector<Endpoint> controllers, TlsSource tls, Handlers handlers)
    : io_(io),
      controllers_(std::move(controllers)),
      tls_(std::move(tls)),
      handlers_(std::move(handlers)),
      retry_(io),
      backoff_(kFirstRetryNs, kMostRetryNs, kProvenSessionNs),
      random_(std::random_device{}()) {}

asio::awaitable<void> Uplink::run() {
  for (std::size_t turn = 0; !stopped_; ++turn) {
    const Endpoint& controller = controllers_[turn % controllers_.size()];
    const auto ended = co_await session(controller);
    if (stopped_) break;
    ++counts_.failures;
    spdlog::warn("controller {}: {}; steering stays as it is, trying again", to_string(controller),
                 ended ? "session ended" : ended.error().message);
    co_await wait_before_retry();
  }
}

asio::awaitable<void> Uplink::wait_before_retry() {
  const double jitter = std::uniform_real_distribution<double>(0, 1)(random_);
  retry_.expires_after(std::chrono::nanoseconds(backoff_.failed(jitter)));
  boost::system::error_code stopped;
  co_await retry_.async_wait(asio::redirect_error(asio::use_awaitable, stopped));
}

void Uplink::stop() {
  stopped_ = true;
  retry_.cancel();
  if (connection_) connection_->close();
  boost::system::error_code ignored;
  if (const auto stream = connecting_.lock()) stream->lowest_layer().close(ignored);
}

asio::awaitable<Result<void>> Uplink::session(Endpoint controller) {
  auto stream = co_await connect_to_controller(io_, tls_(), controller, connecting_);
  if (!stream) co_return std::move(stream).error();
  if (stopped_) co_return Error{"stopped"};
  const auto connection = std::make_shared<FramedConnection>(std::move(*stream), kQueueLimitBytes);
  connection_ = connection;
  asio::co_spawn(io_, FramedConnection::run_writer(connection), asio::detached);
  spdlog::debug("controller {}: connected", to_string(controller));
  auto ended = co_await converse(connection);
  connection->close();
  connection_.reset();
  if (std::exchange(accepted_, false)) {
    backoff_.succeeded(monotonic_ns() - accepted_ns_);
    results_.clear();
    handlers_.session_ended();
  }
  co_return ended;
}

asio::awaitable<Result<void>> Uplink::converse(std::shared_ptr<FramedConnection> connection) {
  v1::AgentMessage first;
  *first.mutable_hello() = handlers_.hello();
  connection->send(first);
  const auto read_message = [](const Result<std::string>& body) -> Result<v1::ControllerMessage> {
    if (!body) return body.error();
    v1::ControllerMessage message;
    if (!message.ParseFromString(*body)) return Error{"a message that is no ControllerMessage"};
    return message;
  };
  const auto reply = read_message(co_await connection->read(kHelloLimit));
  if (!reply) co_return reply.error();
  if (!reply->has_hello_reply()) co_return Error{"its first message is not the reply to our Hello"};
  if (!reply->hello_reply().accepted()) co_return Error{"refused this agent: " + reply->hello_reply().reason()};
  accepted_ = true;
  ++counts_.sessions;
  accepted_ns_ = monotonic_ns();
  handlers_.session_began(reply->hello_reply());
  pump();
  while (true) {
    const auto message = read_message(co_await connection->read(kIdleLimit));
    if (!message) co_return message.error();
    handlers_.message(*message);
  }
}

bool Uplink::send(const v1::AgentMessage& message) { return accepted_ && connection_ && connection_->send(message); }

void Uplink::event(v1::AgentEvent event) {
  if (events_.size() >= kMostWaiting) {
    ++counts_.events_lost;
    return;
  }
  *events_.emplace_back().mutable_event() = std::move(event);
  pump();
}

void Uplink::result(v1::ProbeResult result) {
  if (results_.size() >= kMostWaiting) {
    ++counts_.events_lost;
    return;
  }
  *results_.emplace_back().mutable_probe_result() = std::move(result);
  pump();
}

void Uplink::pump() {
  for (auto* queue : {&results_, &events_}) {
    while (!queue->empty() && send(queue->front())) queue->pop_front();
  }
  report_losses();
}

void Uplink::report_losses() {
  if (counts_.events_lost == losses_reported_ || !accepted_ || !events_.empty()) return;
  v1::AgentMessage message;
  v1::AgentEvent& lost = *message.mutable_event();
  lost.set_wall_us(wall_us());
  lost.set_kind("events_lost");
  lost.set_text(std::to_string(counts_.events_lost - losses_reported_) +
                " events or probe results found their queue full");
  if (send(message)) losses_reported_ = counts_.events_lost;
}

}  // namespace te::agent
