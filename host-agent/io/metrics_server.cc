// SPDX-License-Identifier: Apache-2.0
#include "host-agent/io/metrics_server.h"

#include <boost/asio/buffer.hpp>
#include <boost/asio/co_spawn.hpp>
#include <boost/asio/detached.hpp>
#include <boost/asio/read_until.hpp>
#include <boost/asio/redirect_error.hpp>
#include <boost/asio/steady_timer.hpp>
#include <boost/asio/use_awaitable.hpp>
#include <boost/asio/write.hpp>
#include <chrono>
#include <memory>
#include <utility>

namespace te::agent {

namespace asio = boost::asio;
using asio::ip::tcp;

namespace {

constexpr std::size_t kMostConnections = 8;
constexpr std::size_t kMostRequestBytes = 8192;
constexpr std::chrono::seconds kLimit{2};

std::string response(const std::string& status, const std::string& body) {
  return "HTTP/1.1 " + status +
         "\r\nContent-Type: text/plain; version=0.0.4; charset=utf-8\r\nConnection: close\r\nContent-Length: " +
         std::to_string(body.size()) + "\r\n\r\n" + body;
}

bool asks_for_metrics(const std::string& request) {
  return request.starts_with("GET /metrics ") || request.starts_with("GET /metrics?");
}

}  // namespace

MetricsServer::MetricsServer(asio::io_context& io, std::function<std::string()> text)
    : io_(io), text_(std::move(text)), acceptor_(io) {}

Result<void> MetricsServer::listen(const Endpoint& endpoint) {
  const auto error = [&](const boost::system::error_code& why) {
    return Error{"serve metrics on " + to_string(endpoint) + ": " + why.message()};
  };
  boost::system::error_code failed;
  const auto address = asio::ip::make_address(endpoint.host, failed);
  if (failed) return Error{"serve metrics on " + to_string(endpoint) + ": expected a numeric address"};
  const tcp::endpoint local(address, endpoint.port);
  acceptor_.open(local.protocol(), failed);
  if (!failed) acceptor_.set_option(tcp::acceptor::reuse_address(true), failed);
  if (!failed) acceptor_.bind(local, failed);
  if (!failed) acceptor_.listen(tcp::acceptor::max_listen_connections, failed);
  if (failed) return error(failed);
  asio::co_spawn(io_, serve(), asio::detached);
  return {};
}

void MetricsServer::stop() {
  boost::system::error_code ignored;
  acceptor_.close(ignored);
}

asio::awaitable<void> MetricsServer::serve() {
  while (acceptor_.is_open()) {
    boost::system::error_code failed;
    tcp::socket socket = co_await acceptor_.async_accept(asio::redirect_error(asio::use_awaitable, failed));
    if (failed == asio::error::operation_aborted) co_return;
    if (failed) {  // out of descriptors, perhaps: do not spin
      asio::steady_timer pause(io_, kLimit);
      co_await pause.async_wait(asio::redirect_error(asio::use_awaitable, failed));
      continue;
    }
    if (connections_ < kMostConnections) asio::co_spawn(io_, answer(std::move(socket)), asio::detached);
  }
}

asio::awaitable<void> MetricsServer::answer(tcp::socket accepted) {
  ++connections_;
  const auto socket = std::make_shared<tcp::socket>(std::move(accepted));
  asio::steady_timer limit(io_, kLimit);
  limit.async_wait([weak = std::weak_ptr(socket)](const boost::system::error_code& in_time) {
    boost::system::error_code ignored;
    if (const auto late = weak.lock(); late && !in_time) late->close(ignored);
  });
  std::string request;
  boost::system::error_code failed;
  co_await asio::async_read_until(*socket, asio::dynamic_buffer(request, kMostRequestBytes), "\r\n\r\n",
                                  asio::redirect_error(asio::use_awaitable, failed));
  if (!failed) {
    const std::string reply =
        asks_for_metrics(request) ? response("200 OK", text_()) : response("404 Not Found", "only /metrics is here\n");
    co_await asio::async_write(*socket, asio::buffer(reply), asio::redirect_error(asio::use_awaitable, failed));
    socket->shutdown(tcp::socket::shutdown_send, failed);
  }
  --connections_;
}

}  // namespace te::agent
