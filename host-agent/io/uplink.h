// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <boost/asio/awaitable.hpp>
#include <boost/asio/io_context.hpp>
#include <boost/asio/steady_timer.hpp>
#include <cstdint>
#include <deque>
#include <functional>
#include <memory>
#include <random>
#include <string>
#include <vector>

#include "common/net/framed_connection.h"
#include "host-agent/core/agent_config.h"
#include "host-agent/core/backoff.h"
#include "host-agent/io/controller_stream.h"
#include "te/v1/agent.pb.h"

namespace te::agent {

/// The agent's end of its one session with one of a list of controllers, which are tried in turn with a back-off. All
/// of it runs on the io_context's one thread.
class Uplink {
 public:
  struct Handlers {
    std::function<v1::Hello()> hello;                          ///< first message of a session
    std::function<void(const v1::HelloReply&)> session_began;  ///< the controller accepted
    std::function<void(const v1::ControllerMessage&)> message;
    std::function<void()> session_ended;  ///< after session_began only
  };
  struct Counts {
    std::uint64_t sessions = 0;
    std::uint64_t failures = 0;     ///< attempts that gave no session, and sessions that broke
    std::uint64_t events_lost = 0;  ///< events and probe results that found their queue full
  };

  /// Above so much waiting output, state is refused; of events and of results, so many wait.
  static constexpr std::size_t kQueueLimitBytes = std::size_t{4} << 20;
  static constexpr std::size_t kMostWaiting = 4096;

  /// What a session's TLS is made with; asked for each anew.
  using TlsSource = std::function<std::shared_ptr<boost::asio::ssl::context>()>;

  Uplink(boost::asio::io_context& io, std::vector<Endpoint> controllers, TlsSource tls, Handlers handlers);

  /// Keeps a session until stop(); spawn once.
  boost::asio::awaitable<void> run();
  void stop();

  /// Sends state at once; false when there is no session or its queue is full: send newer state later.
  bool send(const v1::AgentMessage& message);
  /// Sends an event, now or when there is a session with room; a bounded number waits, the oldest go first.
  void event(v1::AgentEvent event);
  /// Sends the result of a probe order of this session, when there is room.
  void result(v1::ProbeResult result);
  /// Hands waiting events and results to the session; call it now and then.
  void pump();

  [[nodiscard]] bool has_session() const { return accepted_; }
  /// Bytes handed to the session that are not on their way yet; events and results that wait for room.
  [[nodiscard]] std::size_t queued_bytes() const { return connection_ ? connection_->queued_bytes() : 0; }
  [[nodiscard]] std::size_t waiting() const { return events_.size() + results_.size(); }
  [[nodiscard]] const Counts& counts() const { return counts_; }

 private:
  boost::asio::awaitable<Result<void>> session(Endpoint controller);
  boost::asio::awaitable<Result<void>> converse(std::shared_ptr<FramedConnection> connection);
  boost::asio::awaitable<void> wait_before_retry();
  void report_losses();

  boost::asio::io_context& io_;
  std::vector<Endpoint> controllers_;
  TlsSource tls_;
  Handlers handlers_;
  boost::asio::steady_timer retry_;
  Backoff backoff_;
  std::minstd_rand random_;
  std::weak_ptr<TlsStream> connecting_;
  std::shared_ptr<FramedConnection> connection_;
  std::deque<v1::AgentMessage> events_;
  std::deque<v1::AgentMessage> results_;
  Counts counts_;
  std::uint64_t losses_reported_ = 0;
  std::int64_t accepted_ns_ = 0;
  bool accepted_ = false;
  bool stopped_ = false;
};

}  // namespace te::agent
