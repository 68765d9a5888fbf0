// SPDX-License-Identifier: Apache-2.0
#include "tests/bench/ingest/agents.h"

#include <array>
#include <boost/asio/co_spawn.hpp>
#include <boost/asio/detached.hpp>
#include <boost/asio/redirect_error.hpp>
#include <boost/asio/steady_timer.hpp>
#include <boost/asio/use_awaitable.hpp>
#include <chrono>
#include <cstdio>
#include <utility>

#include "common/net/tls.h"

namespace te {

namespace asio = boost::asio;
using asio::ip::tcp;

namespace {

constexpr int kConnectingAtOnce = 192;
constexpr std::size_t kQueueLimitBytes = std::size_t{1} << 20;
constexpr std::chrono::hours kPatience{1};
constexpr std::chrono::milliseconds kBackOff{500};

/// Each host comes from an address of its own, as the controller bounds the handshakes of one address.
tcp::endpoint local_end(std::uint32_t host) {
  return {
      asio::ip::address_v4({127, 1, static_cast<std::uint8_t>(host / 250), static_cast<std::uint8_t>(host % 250 + 1)}),
      0};
}

}  // namespace

void SimulatedAgents::start() {
  for (int i = 0; i < kConnectingAtOnce; ++i) asio::co_spawn(*io_, connect_some(), asio::detached);
}

std::uint64_t SimulatedAgents::queued_bytes() const {
  std::uint64_t sum = 0;
  for (const auto& connection : connections_) sum += connection->queued_bytes();
  return sum;
}

asio::awaitable<void> SimulatedAgents::connect_some() {
  while (next_host_ < traffic_->hosts()) {
    const std::uint32_t host = next_host_++;
    auto connection = co_await connect(host);
    while (!connection) {  // as real agents do
      ++counters_.retries;
      asio::steady_timer pause(*io_, kBackOff);
      boost::system::error_code ignored;
      co_await pause.async_wait(asio::redirect_error(asio::use_awaitable, ignored));
      connection = co_await connect(host);
    }
    ++counters_.connected;
    connections_.push_back(connection);
    asio::co_spawn(*io_, listen(connection), asio::detached);
    asio::co_spawn(*io_, report(host, connection), asio::detached);
  }
}

/// Null when it is not accepted.
asio::awaitable<std::shared_ptr<FramedConnection>> SimulatedAgents::connect(std::uint32_t host) {
  const auto context = make_tls_context(authority_->issue(BenchTraffic::name(host)), TlsSide::kClient);
  if (!context) co_return nullptr;
  boost::system::error_code failed;
  tcp::socket socket(*io_);
  socket.open(tcp::v4(), failed);
  socket.bind(local_end(host), failed);
  if (!failed) {
    co_await socket.async_connect({asio::ip::address_v4::loopback(), port_},
                                  asio::redirect_error(asio::use_awaitable, failed));
  }
  if (failed) co_return nullptr;
  socket.set_option(tcp::no_delay(true), failed);
  TlsStream stream(std::move(socket), **context);
  co_await stream.async_handshake(asio::ssl::stream_base::client, asio::redirect_error(asio::use_awaitable, failed));
  if (failed) co_return nullptr;
  auto connection = std::make_shared<FramedConnection>(std::move(stream), kQueueLimitBytes);
  asio::co_spawn(*io_, FramedConnection::run_writer(connection), asio::detached);
  connection->send(traffic_->hello(host));
  const auto reply = co_await connection->read(kPatience);
  v1::ControllerMessage message;
  if (!reply || !message.ParseFromString(*reply) || !message.hello_reply().accepted()) {
    std::fprintf(stderr, "agent %s was refused: %s\n", BenchTraffic::name(host).c_str(),
                 reply ? message.hello_reply().reason().c_str() : reply.error().message.c_str());
    connection->close();
    co_return nullptr;
  }
  co_return connection;
}

asio::awaitable<void> SimulatedAgents::listen(std::shared_ptr<FramedConnection> connection) {
  while (true) {
    const auto body = co_await connection->read(kPatience);
    if (!body) break;
    v1::ControllerMessage message;
    if (!message.ParseFromString(*body)) break;
    if (!message.has_probe_request()) continue;
    const v1::AgentMessage answer = traffic_->answer(message.probe_request());
    counters_.probes += static_cast<std::uint64_t>(answer.probe_result().answers_size());
    connection->send(answer);
  }
  ++counters_.lost;
  connection->close();
}

void SimulatedAgents::send_update(v1::AgentMessage& message, FramedConnection& connection, std::uint32_t round) {
  if (talk_ == Talk::kIdle && round > 0) {
    v1::AgentMessage nothing;
    nothing.mutable_flows()->set_interval_ms(interval_ms_);
    connection.send(nothing);
    return;
  }
  if (round > 0) advance(*message.mutable_flows(), round);
  if (!connection.send(message)) {
    ++counters_.refused;
    return;
  }
  counters_.records += static_cast<std::uint64_t>(message.flows().flows_size());
  counters_.bytes += message.ByteSizeLong();
}

asio::awaitable<void> SimulatedAgents::report(std::uint32_t host, std::shared_ptr<FramedConnection> connection) {
  v1::AgentMessage message = traffic_->first_report(host);
  asio::steady_timer timer(*io_);
  auto due = std::chrono::steady_clock::now();
  for (std::uint32_t round = 0; connection->is_open(); ++round) {
    const std::chrono::milliseconds interval(interval_ms_);
    message.mutable_flows()->set_interval_ms(interval_ms_);
    send_update(message, *connection, round);
    due += interval;
    const auto now = std::chrono::steady_clock::now();
    if (now - due > interval) {
      ++counters_.late;
      due = now;
    }
    timer.expires_at(due);
    boost::system::error_code ignored;
    co_await timer.async_wait(asio::redirect_error(asio::use_awaitable, ignored));
  }
}

}  // namespace te
