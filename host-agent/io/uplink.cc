// SPDX-License-Identifier: Apache-2.0
#include "host-agent/io/uplink.h"

#include <netinet/tcp.h>
#include <spdlog/spdlog.h>
#include <sys/socket.h>

#include <boost/asio/co_spawn.hpp>
#include <boost/asio/connect.hpp>
#include <boost/asio/detached.hpp>
#include <boost/asio/redirect_error.hpp>
#include <boost/asio/use_awaitable.hpp>
#include <chrono>
#include <utility>

#include "common/os/clock.h"

namespace te::agent {

namespace asio = boost::asio;
using asio::ip::tcp;

namespace {

constexpr std::int64_t kFirstRetryNs = 200'000'000;
constexpr std::int64_t kMostRetryNs = 5'000'000'000;
// A session that is broken again and again, by an agent of the same name for one, must not be opened ever faster.
constexpr std::int64_t kProvenSessionNs = 5'000'000'000;
constexpr std::chrono::seconds kConnectLimit{5};
constexpr std::chrono::seconds kHelloLimit{10};
// A controller with nothing to say sends nothing; TCP keep-alive finds out when it is gone.
constexpr std::chrono::hours kIdleLimit{1};

void set_option(tcp::socket& socket, int level, int option, int value) {
  ::setsockopt(socket.native_handle(), level, option, &value, sizeof(value));
}

/// Notices a controller that is gone within about 25 s, though neither side may send for long.
void keep_alive(tcp::socket& socket) {
  set_option(socket, SOL_SOCKET, SO_KEEPALIVE, 1);
  set_option(socket, IPPROTO_TCP, TCP_KEEPIDLE, 10);
  set_option(socket, IPPROTO_TCP, TCP_KEEPINTVL, 5);
  set_option(socket, IPPROTO_TCP, TCP_KEEPCNT, 3);
  set_option(socket, IPPROTO_TCP, TCP_USER_TIMEOUT, 25000);
  set_option(socket, IPPROTO_TCP, TCP_NODELAY, 1);
}

/// OpenSSL's first error often is about a detail of the certificate check; its verdict says what to look at.
Error handshake_error(TlsStream& stream, const boost::system::error_code& failed) {
  const long verdict = SSL_get_verify_result(stream.native_handle());
  if (verdict == X509_V_OK) return Error{"TLS handshake: " + failed.message()};
  return Error{std::string("its certificate is not trusted: ") + X509_verify_cert_error_string(verdict)};
}

/// A numeric address needs no resolver (and none of its threads).
asio::awaitable<Result<std::vector<tcp::endpoint>>> resolve(const asio::any_io_executor& executor, const Endpoint& of) {
  boost::system::error_code failed;
  const auto address = asio::ip::make_address(of.host, failed);
  if (!failed) co_return std::vector{tcp::endpoint(address, of.port)};
  tcp::resolver resolver(executor);
  const auto found = co_await resolver.async_resolve(of.host, std::to_string(of.port),
                                                     asio::redirect_error(asio::use_awaitable, failed));
  if (failed) co_return Error{"resolve " + of.host + ": " + failed.message()};
  std::vector<tcp::endpoint> endpoints;
  for (const auto& entry : found) endpoints.push_back(entry.endpoint());
  co_return endpoints;
}

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

asio::awaitable<Result<TlsStream>> Uplink::connect(Endpoint controller) {
  const auto tls = tls_();
  auto stream = std::make_shared<TlsStream>(io_, *tls);
  connecting_ = stream;
  asio::steady_timer limit(io_, kConnectLimit);
  limit.async_wait([weak = std::weak_ptr(stream)](const boost::system::error_code& in_time) {
    boost::system::error_code ignored;
    if (const auto late = weak.lock(); late && !in_time) late->lowest_layer().close(ignored);
  });
  const auto endpoints = co_await resolve(stream->get_executor(), controller);
  if (!endpoints) co_return endpoints.error();
  boost::system::error_code failed;
  co_await asio::async_connect(stream->lowest_layer(), *endpoints, asio::redirect_error(asio::use_awaitable, failed));
  if (failed) co_return Error{"connect: " + failed.message()};
  keep_alive(stream->next_layer());
  co_await stream->async_handshake(asio::ssl::stream_base::client, asio::redirect_error(asio::use_awaitable, failed));
  if (failed) co_return handshake_error(*stream, failed);
  const auto name = peer_common_name(*stream);
  if (!name) co_return name.error();
  if (*name != kControllerName) {
    co_return Error{"its certificate is for '" + *name + "', expected '" + kControllerName + "'"};
  }
  connecting_.reset();
  co_return std::move(*stream);
}

asio::awaitable<Result<void>> Uplink::session(Endpoint controller) {
  auto stream = co_await connect(controller);
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
