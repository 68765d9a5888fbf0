// SPDX-License-Identifier: Apache-2.0
#include "host-agent/io/controller_stream.h"

#include <netinet/tcp.h>
#include <sys/socket.h>

#include <array>
#include <boost/asio/buffer.hpp>
#include <boost/asio/co_spawn.hpp>
#include <boost/asio/connect.hpp>
#include <boost/asio/detached.hpp>
#include <boost/asio/redirect_error.hpp>
#include <boost/asio/steady_timer.hpp>
#include <boost/asio/use_awaitable.hpp>
#include <chrono>
#include <string>
#include <utility>
#include <vector>

namespace te::agent {

namespace asio = boost::asio;
using asio::ip::tcp;

namespace {

constexpr std::chrono::seconds kConnectLimit{5};
// In TLS 1.3 a client learns only afterwards that its certificate was refused.
constexpr std::chrono::milliseconds kRefusalLimit{500};

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

/// An Error when the other end closes or refuses within kRefusalLimit. Else takes its leave, so that the controller has
/// lost nobody.
asio::awaitable<Result<void>> wait_for_refusal(asio::io_context& io, TlsStream& stream) {
  asio::steady_timer limit(io, kRefusalLimit);
  bool in_time = true;
  limit.async_wait([&](const boost::system::error_code& cancelled) {
    boost::system::error_code ignored;
    if (cancelled) return;
    in_time = false;
    stream.lowest_layer().cancel(ignored);
  });
  std::array<char, 1> byte{};
  boost::system::error_code failed;
  co_await stream.async_read_some(asio::buffer(byte), asio::redirect_error(asio::use_awaitable, failed));
  if (in_time && failed) {
    limit.cancel();
    co_return Error{"refuses this node's certificate: " + failed.message()};
  }
  limit.expires_after(kRefusalLimit);
  limit.async_wait([&](const boost::system::error_code& cancelled) {
    boost::system::error_code ignored;
    if (!cancelled) stream.lowest_layer().close(ignored);
  });
  co_await stream.async_shutdown(asio::redirect_error(asio::use_awaitable, failed));
  limit.cancel();
  co_return Result<void>();
}

}  // namespace

asio::awaitable<Result<TlsStream>> connect_to_controller(asio::io_context& io, std::shared_ptr<asio::ssl::context> tls,
                                                         Endpoint controller, std::weak_ptr<TlsStream>& connecting) {
  auto stream = std::make_shared<TlsStream>(io, *tls);
  connecting = stream;
  asio::steady_timer limit(io, kConnectLimit);
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
  connecting.reset();
  co_return std::move(*stream);
}

Result<void> probe_controller(const std::shared_ptr<asio::ssl::context>& tls, const Endpoint& controller) {
  asio::io_context io(1);
  std::weak_ptr<TlsStream> connecting;
  Result<void> outcome;
  const auto probe = [&]() -> asio::awaitable<void> {
    auto stream = co_await connect_to_controller(io, tls, controller, connecting);
    if (!stream) {
      outcome = std::move(stream).error();
    } else {
      outcome = co_await wait_for_refusal(io, *stream);
    }
  };
  asio::co_spawn(io, probe, asio::detached);
  io.run();
  return outcome;
}

}  // namespace te::agent
