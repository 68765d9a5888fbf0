// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <boost/asio/awaitable.hpp>
#include <boost/asio/io_context.hpp>
#include <boost/asio/ip/tcp.hpp>
#include <cstddef>
#include <functional>
#include <string>

#include "common/base/result.h"
#include "host-agent/core/agent_config.h"

namespace te::agent {

/// Answers GET /metrics by HTTP/1.1, one request a connection, on the io_context's own thread. (The exposer of
/// prometheus-cpp has threads of its own and takes seconds to stop.)
class MetricsServer {
 public:
  /// `text`: what /metrics gives.
  MetricsServer(boost::asio::io_context& io, std::function<std::string()> text);

  /// An Error says why the address cannot be used.
  Result<void> listen(const Endpoint& endpoint);
  /// Where it listens; port 0 in listen() lets the kernel choose.
  [[nodiscard]] std::uint16_t port() const { return acceptor_.local_endpoint().port(); }
  void stop();

 private:
  boost::asio::awaitable<void> serve();
  boost::asio::awaitable<void> answer(boost::asio::ip::tcp::socket socket);

  boost::asio::io_context& io_;
  std::function<std::string()> text_;
  boost::asio::ip::tcp::acceptor acceptor_;
  std::size_t connections_ = 0;
};

}  // namespace te::agent
