// SPDX-License-Identifier: Apache-2.0
#include "te-controller/app/agent_server.h"

#include <google/protobuf/arena.h>
#include <spdlog/spdlog.h>

#include <boost/asio/co_spawn.hpp>
#include <boost/asio/detached.hpp>
#include <boost/asio/redirect_error.hpp>
#include <boost/asio/steady_timer.hpp>
#include <boost/asio/use_awaitable.hpp>
#include <optional>
#include <utility>

namespace te {

namespace asio = boost::asio;
using asio::ip::tcp;

namespace {

constexpr std::size_t kQueueLimitBytes = std::size_t{4} << 20;  // of one session's output
constexpr int kAcceptsAtOnce = 16;  // each takes one connection in a turn of the event loop, which may be a long one
constexpr std::size_t kHandshakeLimit = 256;      // sessions that have not said Hello yet
constexpr std::size_t kHandshakesAnAddress = 16;  // of these; idle connections must not keep agents out
constexpr std::chrono::seconds kHandshakeTime{5};
constexpr std::chrono::minutes kRefusalKept{10};  // for warnings
constexpr std::size_t kRefusalsKept = 64;
constexpr std::size_t kRefusalsShown = 8;
constexpr std::chrono::milliseconds kAcceptBackoff{100};  // out of descriptors: wait, do not spin
constexpr std::chrono::milliseconds kFarewellTime{200};   // for the reason of a refusal to reach the agent

std::string text_of(const tcp::endpoint& endpoint) {
  return endpoint.address().to_string() + " port " + std::to_string(endpoint.port());
}

}  // namespace

/// Shared with the coroutines, which may end after the server.
struct AgentServer::State {
  State(tcp::acceptor listening, std::shared_ptr<asio::ssl::context> context, std::chrono::milliseconds silence)
      : acceptor(std::move(listening)), tls(std::move(context)), silence_limit(silence) {}

  tcp::acceptor acceptor;
  std::shared_ptr<asio::ssl::context> tls;
  std::chrono::milliseconds silence_limit;
  AgentListener* listener = nullptr;  ///< null once stopped
  std::map<std::string, std::shared_ptr<FramedConnection>> sessions;
  std::size_t handshakes = 0;
  std::map<asio::ip::address, std::size_t> handshakes_from;
  Counters counters;

  void begin_handshake(const asio::ip::address& from) {
    ++handshakes;
    ++handshakes_from[from];
  }
  void end_handshake(const asio::ip::address& from) {
    --handshakes;
    if (--handshakes_from[from] == 0) handshakes_from.erase(from);
  }

  struct Refusal {
    std::uint64_t count = 0;
    std::string reason;  ///< the last
    std::chrono::steady_clock::time_point when;
  };
  std::map<std::string, Refusal> refusals;  ///< by node, or by address while that is unknown

  /// `who`: the node where its certificate is known, else an address.
  void refuse(const std::string& who, const std::string& peer, const std::string& reason) {
    ++counters.refused;
    spdlog::warn("refused agent at {}: {}", peer, reason);
    remember(who, reason);
  }
  void remember(const std::string& who, const std::string& reason) {
    const auto now = std::chrono::steady_clock::now();
    std::erase_if(refusals, [&](const auto& entry) { return now - entry.second.when > kRefusalKept; });
    if (refusals.size() >= kRefusalsKept && !refusals.contains(who)) return;
    Refusal& refusal = refusals[who];
    ++refusal.count;
    refusal.reason = reason;
    refusal.when = now;
  }
};

Result<std::unique_ptr<AgentServer>> AgentServer::listen(asio::io_context& io, const ListenAddress& address,
                                                         std::shared_ptr<asio::ssl::context> tls,
                                                         std::chrono::milliseconds silence_limit) {
  const std::string where = "listen for agents on " + address.host + " port " + std::to_string(address.port);
  boost::system::error_code failed;
  const auto host = asio::ip::make_address(address.host, failed);
  if (failed) return Error{where + ": " + failed.message()};
  const tcp::endpoint endpoint(host, address.port);
  tcp::acceptor acceptor(io);
  acceptor.open(endpoint.protocol(), failed);
  if (!failed) acceptor.set_option(tcp::acceptor::reuse_address(true), failed);
  if (!failed) acceptor.bind(endpoint, failed);
  if (!failed) acceptor.listen(tcp::acceptor::max_listen_connections, failed);
  if (failed) return Error{where + ": " + failed.message()};
  return std::make_unique<AgentServer>(std::move(acceptor), std::move(tls), silence_limit);
}

AgentServer::AgentServer(tcp::acceptor acceptor, std::shared_ptr<asio::ssl::context> tls,
                         std::chrono::milliseconds silence_limit)
    : state_(std::make_shared<State>(std::move(acceptor), std::move(tls), silence_limit)) {}

AgentServer::~AgentServer() { stop(); }

void AgentServer::start(AgentListener& listener) {
  state_->listener = &listener;
  for (int i = 0; i < kAcceptsAtOnce; ++i)
    asio::co_spawn(state_->acceptor.get_executor(), accept_loop(state_), asio::detached);
}

void AgentServer::stop() {
  state_->listener = nullptr;
  boost::system::error_code ignored;
  state_->acceptor.close(ignored);
  const auto sessions = std::exchange(state_->sessions, {});
  for (const auto& [node, connection] : sessions) connection->close();
}

const AgentServer::Counters& AgentServer::counters() const { return state_->counters; }

std::vector<std::string> AgentServer::warnings() const {
  std::vector<std::string> all;
  const auto now = std::chrono::steady_clock::now();
  for (const auto& [who, refusal] : state_->refusals) {
    if (now - refusal.when > kRefusalKept || all.size() >= kRefusalsShown) continue;
    all.push_back("agent " + who + " was refused " + std::to_string(refusal.count) + " times: " + refusal.reason);
  }
  return all;
}

std::uint16_t AgentServer::port() const {
  boost::system::error_code ignored;
  return state_->acceptor.local_endpoint(ignored).port();
}

bool AgentServer::send(const std::string& node, const v1::ControllerMessage& message) {
  const auto found = state_->sessions.find(node);
  if (found == state_->sessions.end()) return false;
  if (found->second->send(message)) return true;
  if (found->second->is_open()) {
    ++state_->counters.overflowed;
    spdlog::warn("agent {} does not read what it is sent; its session ends", node);
    found->second->close();
  }
  return false;
}

asio::awaitable<void> AgentServer::accept_loop(std::shared_ptr<State> state) {
  while (state->acceptor.is_open()) {
    boost::system::error_code failed;
    tcp::socket socket = co_await state->acceptor.async_accept(asio::redirect_error(asio::use_awaitable, failed));
    if (failed && state->acceptor.is_open()) {
      asio::steady_timer pause(state->acceptor.get_executor(), kAcceptBackoff);
      co_await pause.async_wait(asio::redirect_error(asio::use_awaitable, failed));
      continue;
    }
    if (failed) continue;
    const asio::ip::address from = socket.remote_endpoint(failed).address();
    const auto same = state->handshakes_from.find(from);
    const bool crowded = same != state->handshakes_from.end() && same->second >= kHandshakesAnAddress;
    if (crowded || state->handshakes >= kHandshakeLimit) {
      ++state->counters.refused;
      state->remember(from.to_string(), "too many connections that have not finished their handshake");
      continue;  // the socket closes here
    }
    asio::co_spawn(state->acceptor.get_executor(), session(state, std::move(socket)), asio::detached);
  }
}

asio::awaitable<void> AgentServer::session(std::shared_ptr<State> state, tcp::socket socket) {
  boost::system::error_code failed;
  const tcp::endpoint remote = socket.remote_endpoint(failed);
  const std::string peer = text_of(remote);
  const std::string address = remote.address().to_string();
  socket.set_option(tcp::no_delay(true), failed);
  TlsStream stream(std::move(socket), *state->tls);
  state->begin_handshake(remote.address());
  auto timer = std::make_shared<asio::steady_timer>(stream.get_executor(), kHandshakeTime);
  auto done = std::make_shared<bool>(false);  // an expiry already queued must not touch a stream that has moved on
  timer->async_wait([timer, done, &stream](const boost::system::error_code& aborted) {
    if (aborted || *done) return;
    boost::system::error_code ignored;
    stream.lowest_layer().close(ignored);
  });
  co_await stream.async_handshake(asio::ssl::stream_base::server, asio::redirect_error(asio::use_awaitable, failed));
  *done = true;
  timer->cancel();
  state->end_handshake(remote.address());
  if (failed) {
    state->refuse(address, peer, "TLS handshake: " + failed.message());
    co_return;
  }
  const auto name = peer_common_name(stream);
  if (!name) {
    state->refuse(address, peer, name.error().message);
    co_return;
  }
  auto connection = std::make_shared<FramedConnection>(std::move(stream), kQueueLimitBytes);
  asio::co_spawn(state->acceptor.get_executor(), FramedConnection::run_writer(connection), asio::detached);
  co_await serve(state, connection, peer, *name);
  connection->close();
}

namespace {

asio::awaitable<Result<v1::Hello>> read_hello(FramedConnection& connection, const std::string& name) {
  auto body = co_await connection.read(std::chrono::duration_cast<std::chrono::milliseconds>(kHandshakeTime));
  if (!body) co_return Error{"no Hello: " + body.error().message};
  v1::AgentMessage message;
  if (!message.ParseFromString(*body)) co_return Error{"the first message cannot be decoded"};
  if (!message.has_hello()) co_return Error{"the first message is not a Hello"};
  if (message.hello().node() != name) {
    co_return Error{"certificate of '" + name + "' but Hello of '" + message.hello().node() + "'"};
  }
  co_return std::move(*message.mutable_hello());
}

}  // namespace

asio::awaitable<void> AgentServer::serve(std::shared_ptr<State> state, std::shared_ptr<FramedConnection> connection,
                                         std::string peer, std::string name) {
  const auto hello = co_await read_hello(*connection, name);
  if (state->listener == nullptr) co_return;
  v1::ControllerMessage greeting;
  if (hello) {
    *greeting.mutable_hello_reply() = state->listener->on_hello(name, *hello);
  } else {
    greeting.mutable_hello_reply()->set_reason(hello.error().message);
  }
  if (!greeting.hello_reply().accepted()) {
    state->refuse(name, peer, greeting.hello_reply().reason());
    connection->send(greeting);
    asio::steady_timer farewell(state->acceptor.get_executor(), kFarewellTime);
    boost::system::error_code ignored;
    co_await farewell.async_wait(asio::redirect_error(asio::use_awaitable, ignored));
    co_return;
  }
  ++state->counters.accepted;
  state->refusals.erase(name);
  const auto older = std::exchange(state->sessions[name], connection);
  if (older) {
    spdlog::info("agent {} connected anew; its older session ends", name);
    older->close();
  }
  spdlog::info("agent {} connected from {}", name, peer);
  connection->send(greeting);
  std::string reason;
  auto last_flows = std::chrono::steady_clock::now();
  while (reason.empty() && state->listener != nullptr) {
    auto body = co_await connection->read(state->silence_limit);
    const auto current = state->sessions.find(name);
    if (state->listener == nullptr || current == state->sessions.end() || current->second != connection) co_return;
    google::protobuf::Arena memory;  // hundreds of reports, with addresses each
    auto& message = *google::protobuf::Arena::CreateMessage<v1::AgentMessage>(&memory);
    if (!body) {
      reason = body.error().message;
    } else if (!message.ParseFromString(*body)) {
      ++state->counters.broken;
      reason = "a message of " + std::to_string(body->size()) + " bytes cannot be decoded";
    } else if (const auto taken = state->listener->on_message(name, message); !taken) {
      ++state->counters.broken;
      reason = taken.error().message;
    }
    const auto now = std::chrono::steady_clock::now();
    if (message.has_flows()) last_flows = now;
    if (reason.empty() && now - last_flows > state->silence_limit) {
      reason = "no flow report for " + std::to_string(state->silence_limit.count()) + " ms";
    }
  }
  if (state->listener == nullptr) co_return;
  spdlog::warn("agent {} disconnected: {}", name, reason);
  state->sessions.erase(name);
  state->listener->on_gone(name);
}

}  // namespace te
