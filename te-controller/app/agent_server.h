// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <boost/asio/awaitable.hpp>
#include <boost/asio/io_context.hpp>
#include <boost/asio/ip/tcp.hpp>
#include <chrono>
#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "common/base/result.h"
#include "common/net/framed_connection.h"
#include "common/net/tls_source.h"
#include "te-controller/app/agent_limits.h"
#include "te-controller/app/config.h"
#include "te-controller/engine/flow_news.h"
#include "te/v1/agent.pb.h"

namespace te {

/// Who hears what agents say. Called on the io_context's thread.
class AgentListener {
 public:
  virtual ~AgentListener() = default;
  /// A node whose certificate fits its Hello. The reply is sent; a session that is not accepted ends after it.
  virtual v1::HelloReply on_hello(const std::string& node, const v1::Hello& hello) = 0;
  /// Any later message; an Error ends the session.
  virtual Result<void> on_message(const std::string& node, const v1::AgentMessage& message) = 0;
  /// A FlowUpdate that was read without decoding it first; others come as messages. An Error ends the session.
  virtual Result<void> on_flows(const std::string& node, const FlowNews& news) = 0;
  /// The node's session ended (not called when a newer session of the node took its place).
  virtual void on_gone(const std::string& node) = 0;
};

/// The TLS listener for agents: one session a node, the newest wins. Output of a session is bounded: one that does not
/// read what it is sent is closed. Silence for `silence_limit` closes it too. One that sends more than its limits is
/// read more slowly.
class AgentServer {
 public:
  struct Counters {
    std::uint64_t accepted = 0;    ///< sessions that said a good Hello
    std::uint64_t refused = 0;     ///< handshake, certificate or Hello not right
    std::uint64_t revoked = 0;     ///< of these, and sessions ended, because the certificate is revoked
    std::uint64_t broken = 0;      ///< ended by a frame or message that cannot be read
    std::uint64_t overflowed = 0;  ///< ended because the agent did not read
    std::uint64_t slowed = 0;      ///< pauses in reading from an agent above its limits
  };

  static Result<std::unique_ptr<AgentServer>> listen(boost::asio::io_context& io, const ListenAddress& address,
                                                     std::shared_ptr<TlsSource> tls,
                                                     std::chrono::milliseconds silence_limit,
                                                     const AgentLimits& limits = {});
  AgentServer(boost::asio::ip::tcp::acceptor acceptor, std::shared_ptr<TlsSource> tls,
              std::chrono::milliseconds silence_limit, const AgentLimits& limits);
  AgentServer(const AgentServer&) = delete;
  AgentServer& operator=(const AgentServer&) = delete;
  ~AgentServer();

  /// Accepts until stop(). `listener` outlives the server.
  void start(AgentListener& listener);
  void stop();
  /// After the TLS files changed: ends the sessions whose certificate is not good any more.
  void recheck_sessions();
  /// Queues a message for a node; false when it has no session, or its session had to be closed for not reading.
  bool send(const std::string& node, const v1::ControllerMessage& message);
  [[nodiscard]] const Counters& counters() const;
  /// For people: who was refused within the last 10 minutes and not accepted since, how often, and why the last time.
  [[nodiscard]] std::vector<std::string> warnings() const;
  /// The port in use: as configured, or what the kernel chose for port 0.
  [[nodiscard]] std::uint16_t port() const;

 private:
  struct State;
  struct Session;
  static boost::asio::awaitable<void> accept_loop(std::shared_ptr<State> state);
  static boost::asio::awaitable<void> handshake(std::shared_ptr<State> state, boost::asio::ip::tcp::socket socket);
  static boost::asio::awaitable<void> serve(std::shared_ptr<State> state, std::shared_ptr<Session> session);
  struct Said;
  static Result<Said> take(State& state, const std::string& node, const std::string& body);
  static boost::asio::awaitable<std::string> read_messages(std::shared_ptr<State> state,
                                                           std::shared_ptr<Session> session);

  std::shared_ptr<State> state_;
};

}  // namespace te
