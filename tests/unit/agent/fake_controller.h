// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <boost/asio/awaitable.hpp>
#include <boost/asio/co_spawn.hpp>
#include <boost/asio/detached.hpp>
#include <boost/asio/io_context.hpp>
#include <boost/asio/redirect_error.hpp>
#include <boost/asio/use_awaitable.hpp>
#include <chrono>
#include <functional>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "common/net/framed_connection.h"
#include "common/net/tls.h"
#include "te/v1/agent.pb.h"

namespace te::agent::test {

/// The other end of an Uplink: takes sessions on a port of its own, answers each Hello and keeps what it received.
class FakeController {
 public:
  FakeController(boost::asio::io_context& io, const TlsFiles& files)
      : io_(io),
        tls_(make_tls_context(files, TlsSide::kServer).value()),
        acceptor_(io, {boost::asio::ip::make_address("127.0.0.1"), 0}) {
    boost::asio::co_spawn(io_, serve(), boost::asio::detached);
  }

  [[nodiscard]] std::uint16_t port() const { return acceptor_.local_endpoint().port(); }
  void refuse(std::string reason) { refusal_ = std::move(reason); }
  void send(const v1::ControllerMessage& message) { connection_->send(message); }
  void drop_session() { connection_->close(); }
  /// From the next message on, reads nothing more.
  void get_stuck() { stuck_ = true; }
  void close() {
    acceptor_.close();
    if (connection_) connection_->close();
  }

  std::vector<v1::AgentMessage> received;

 private:
  boost::asio::awaitable<void> serve() {
    namespace asio = boost::asio;
    while (acceptor_.is_open()) {
      boost::system::error_code failed;
      auto socket = co_await acceptor_.async_accept(asio::redirect_error(asio::use_awaitable, failed));
      if (failed) co_return;
      TlsStream stream(std::move(socket), *tls_);
      co_await stream.async_handshake(asio::ssl::stream_base::server,
                                      asio::redirect_error(asio::use_awaitable, failed));
      if (failed) continue;
      connection_ = std::make_shared<FramedConnection>(std::move(stream), std::size_t{1} << 20);
      asio::co_spawn(io_, FramedConnection::run_writer(connection_), asio::detached);
      asio::co_spawn(io_, converse(connection_), asio::detached);
    }
  }

  boost::asio::awaitable<void> converse(std::shared_ptr<FramedConnection> connection) {
    while (true) {
      const auto body = co_await connection->read(std::chrono::seconds(30));
      if (!body) co_return;
      v1::AgentMessage message;
      if (!message.ParseFromString(*body)) co_return;
      received.push_back(message);
      if (stuck_) co_return;
      if (!message.has_hello()) continue;
      v1::ControllerMessage reply;
      reply.mutable_hello_reply()->set_accepted(refusal_.empty());
      reply.mutable_hello_reply()->set_reason(refusal_);
      reply.mutable_hello_reply()->set_report_interval_ms(250);
      connection->send(reply);
    }
  }

  boost::asio::io_context& io_;
  std::shared_ptr<boost::asio::ssl::context> tls_;
  boost::asio::ip::tcp::acceptor acceptor_;
  std::shared_ptr<FramedConnection> connection_;
  std::string refusal_;
  bool stuck_ = false;
};

/// Runs the io_context until `done`, or for 10 s at most; returns done().
inline bool run_until(boost::asio::io_context& io, const std::function<bool()>& done) {
  const auto deadline = std::chrono::steady_clock::now() + std::chrono::seconds(10);
  while (!done() && std::chrono::steady_clock::now() < deadline) {
    io.restart();
    io.run_one_for(std::chrono::milliseconds(100));
  }
  return done();
}

}  // namespace te::agent::test
