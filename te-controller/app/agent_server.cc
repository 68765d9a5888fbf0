// SPDX-License-Identifier: Apache-2.0
#include "te-controller/app/agent_server.h"

#include <google/protobuf/arena.h>
#include <spdlog/spdlog.h>

#include <boost/asio/co_spawn.hpp>
#include <boost/asio/detached.hpp>
#include <boost/asio/redirect_error.hpp>
#include <boost/asio/steady_timer.hpp>
#include <boost/asio/use_awaitable.hpp>
#include <map>
#include <optional>
#include <utility>

#include "common/net/pace.h"
#include "common/os/clock.h"

namespace te {

namespace asio = boost::asio;
using asio::ip::tcp;

namespace {

constexpr int kAcceptsAtOnce = 16;  // each takes one connection in a turn of the event loop, which may be a long one
constexpr std::size_t kHandshakeLimit = 256;      // sessions that have not said Hello yet
constexpr std::size_t kHandshakesAnAddress = 16;  // of these; idle connections must not keep agents out
constexpr std::chrono::seconds kHandshakeTime{5};
const std::string kTooLate = "not done within 5 s";
constexpr std::chrono::minutes kRefusalKept{10};  // for warnings
constexpr std::size_t kRefusalsKept = 64;
constexpr std::size_t kRefusalsShown = 8;
constexpr std::chrono::milliseconds kAcceptBackoff{100};  // out of descriptors: wait, do not spin
constexpr std::chrono::milliseconds kFarewellTime{200};   // for the reason of a refusal to reach the agent
constexpr std::chrono::nanoseconds kLongestPause =
    std::chrono::seconds(1);                // of reading; then what is owed is looked at anew
constexpr double kRefusalsLoggedPerS = 10;  // strangers must not fill the disk
constexpr double kRefusalsLoggedAtOnce = 100;

std::string text_of(const tcp::endpoint& endpoint) {
  return endpoint.address().to_string() + " port " + std::to_string(endpoint.port());
}

}  // namespace

/// One agent's connection, from the handshake on.
struct AgentServer::Session {
  std::shared_ptr<FramedConnection> connection;
  PeerIdentity peer;
  std::string from;        ///< address and port
  std::string end_reason;  ///< set when we end it
  bool of_switch = false;  ///< reports links, and no flows

  [[nodiscard]] const std::string& node() const { return peer.facts.name; }
};

/// Shared with the coroutines, which may end after the server.
struct AgentServer::State {
  State(tcp::acceptor listening, std::shared_ptr<TlsSource> source, std::chrono::milliseconds silence,
        const AgentLimits& limit)
      : acceptor(std::move(listening)), tls(std::move(source)), silence_limit(silence), limits(limit) {}

  tcp::acceptor acceptor;
  std::shared_ptr<TlsSource> tls;
  std::chrono::milliseconds silence_limit;
  AgentLimits limits;
  AgentListener* listener = nullptr;  ///< null once stopped
  std::map<std::string, std::shared_ptr<Session>> sessions;
  std::size_t handshakes = 0;
  std::map<asio::ip::address, std::size_t> handshakes_from;
  Counters counters;
  FlowNews news;  ///< what is being read; kept for its memory
  Pace refusals_logged{kRefusalsLoggedPerS, kRefusalsLoggedAtOnce};

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
    if (refusals_logged.try_take(1, monotonic_ns())) spdlog::warn("refused agent at {}: {}", peer, reason);
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
                                                         std::shared_ptr<TlsSource> tls,
                                                         std::chrono::milliseconds silence_limit,
                                                         const AgentLimits& limits) {
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
  return std::make_unique<AgentServer>(std::move(acceptor), std::move(tls), silence_limit, limits);
}

AgentServer::AgentServer(tcp::acceptor acceptor, std::shared_ptr<TlsSource> tls,
                         std::chrono::milliseconds silence_limit, const AgentLimits& limits)
    : state_(std::make_shared<State>(std::move(acceptor), std::move(tls), silence_limit, limits)) {}

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
  for (const auto& [node, session] : sessions) session->connection->close();
}

void AgentServer::recheck_sessions() {
  for (const auto& [node, session] : state_->sessions) {
    const auto good = check_again(session->peer, *state_->tls->context());
    if (good) continue;
    const bool revoked = good.error().message == X509_verify_cert_error_string(X509_V_ERR_CERT_REVOKED);
    if (revoked) ++state_->counters.revoked;
    const CertificateProblem problem{node, session->peer.facts.serial, good.error().message, revoked};
    session->end_reason = problem.text("");
    state_->remember(node, session->end_reason);
    session->connection->close();
  }
}

const AgentServer::Counters& AgentServer::counters() const { return state_->counters; }

std::vector<std::string> AgentServer::warnings() const {
  std::vector<std::string> all;
  const auto now = std::chrono::steady_clock::now();
  for (const auto& [who, refusal] : state_->refusals) {
    if (now - refusal.when > kRefusalKept || all.size() >= kRefusalsShown) continue;
    all.push_back("agent " + who + " was refused" +
                  (refusal.count == 1 ? "" : " " + std::to_string(refusal.count) + " times") + ": " + refusal.reason);
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
  FramedConnection& connection = *found->second->connection;
  if (connection.send(message)) return true;
  if (connection.is_open()) {
    ++state_->counters.overflowed;
    spdlog::warn("agent {} does not read what it is sent; its session ends", node);
    connection.close();
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
    asio::co_spawn(state->acceptor.get_executor(), handshake(state, std::move(socket)), asio::detached);
  }
}

asio::awaitable<void> AgentServer::handshake(std::shared_ptr<State> state, tcp::socket socket) {
  boost::system::error_code failed;
  const tcp::endpoint remote = socket.remote_endpoint(failed);
  const std::string peer = text_of(remote);
  const std::string address = remote.address().to_string();
  socket.set_option(tcp::no_delay(true), failed);
  TlsStream stream(std::move(socket), *state->tls->context());
  const auto problem = std::make_shared<CertificateProblem>();
  stream.set_verify_callback(note_problem(problem));
  state->begin_handshake(remote.address());
  auto timer = std::make_shared<asio::steady_timer>(stream.get_executor(), kHandshakeTime);
  bool is_late = false;
  auto done = std::make_shared<bool>(false);  // an expiry already queued must not touch a stream that has moved on
  timer->async_wait([timer, done, &stream, &is_late](const boost::system::error_code& aborted) {
    if (aborted || *done) return;
    is_late = true;
    boost::system::error_code ignored;
    stream.lowest_layer().close(ignored);
  });
  co_await stream.async_handshake(asio::ssl::stream_base::server, asio::redirect_error(asio::use_awaitable, failed));
  *done = true;
  timer->cancel();
  state->end_handshake(remote.address());
  if (failed) {
    if (problem->revoked) ++state->counters.revoked;
    state->refuse(address, peer, problem->text("TLS handshake: " + (is_late ? kTooLate : failed.message())));
    co_return;
  }
  auto identity = peer_identity(stream.native_handle());
  if (!identity) {
    state->refuse(address, peer, identity.error().message);
    co_return;
  }
  const auto session = std::make_shared<Session>();
  session->connection = std::make_shared<FramedConnection>(std::move(stream), state->limits.queue_bytes);
  session->peer = *std::move(identity);
  session->from = peer;
  asio::co_spawn(state->acceptor.get_executor(), FramedConnection::run_writer(session->connection), asio::detached);
  co_await serve(state, session);
  session->connection->close();
}

namespace {

asio::awaitable<Result<v1::Hello>> read_hello(FramedConnection& connection, const std::string& name) {
  auto body = co_await connection.read(std::chrono::duration_cast<std::chrono::milliseconds>(kHandshakeTime));
  if (!body) co_return Error{"no Hello: " + body.error().message};
  if (const auto small = check_agent_message(*body); !small) co_return small.error();
  v1::AgentMessage message;
  if (!message.ParseFromString(*body)) co_return Error{"the first message cannot be decoded"};
  if (!message.has_hello()) co_return Error{"the first message is not a Hello"};
  if (message.hello().node() != name) {
    co_return Error{"certificate of '" + printable(name) + "' but Hello of '" + printable(message.hello().node()) +
                    "'"};
  }
  co_return std::move(*message.mutable_hello());
}

asio::awaitable<void> pause(const asio::any_io_executor& executor, std::chrono::nanoseconds time) {
  asio::steady_timer timer(executor, time);
  boost::system::error_code ignored;
  co_await timer.async_wait(asio::redirect_error(asio::use_awaitable, ignored));
}

/// Into `memory`: a message may hold hundreds of reports, with addresses each.
Result<const v1::AgentMessage*> decode(const std::string& body, google::protobuf::Arena& memory) {
  if (auto small = check_agent_message(body); !small) return std::move(small).error();
  auto* message = google::protobuf::Arena::CreateMessage<v1::AgentMessage>(&memory);
  if (!message->ParseFromString(body))
    return Error{"a message of " + std::to_string(body.size()) + " bytes cannot be decoded"};
  return message;
}

}  // namespace

asio::awaitable<void> AgentServer::serve(std::shared_ptr<State> state, std::shared_ptr<Session> session) {
  FramedConnection& connection = *session->connection;
  const std::string& name = session->node();
  const auto hello = co_await read_hello(connection, name);
  if (state->listener == nullptr) co_return;
  if (!hello && connection.peer_left()) {  // 'host-agent doctor' does
    spdlog::info("{} connected from {} and left before its Hello", name, session->from);
    co_return;
  }
  v1::ControllerMessage greeting;
  const auto still_good = check_again(session->peer, *state->tls->context());  // the files may have changed since
  if (hello && still_good) {
    *greeting.mutable_hello_reply() = state->listener->on_hello(name, *hello);
  } else {
    greeting.mutable_hello_reply()->set_reason(hello ? still_good.error().message : hello.error().message);
  }
  if (!greeting.hello_reply().accepted()) {
    state->refuse(name, session->from, greeting.hello_reply().reason());
    connection.send(greeting);
    co_await pause(state->acceptor.get_executor(), kFarewellTime);
    co_return;
  }
  session->of_switch = hello->role() == "switch";
  ++state->counters.accepted;
  state->refusals.erase(name);
  const auto older = std::exchange(state->sessions[name], session);
  if (older) {
    spdlog::info("agent {} connected anew; its older session ends", name);
    older->connection->close();
  }
  spdlog::info("agent {} connected from {}", name, session->from);
  connection.send(greeting);
  const std::string reason = co_await read_messages(state, session);
  if (reason.empty()) co_return;
  spdlog::warn("agent {} disconnected: {}", name, session->end_reason.empty() ? reason : session->end_reason);
  state->sessions.erase(name);
  state->listener->on_gone(name);
}

/// What a message was about.
struct AgentServer::Said {
  bool flows = false;
  bool links = false;
};

Result<AgentServer::Said> AgentServer::take(State& state, const std::string& node, const std::string& body) {
  if (read_plain_flow_update(body, kMostFlowReports, state.news)) {
    auto taken = state.listener->on_flows(node, state.news);
    return taken ? Result<Said>(Said{.flows = true}) : std::move(taken).error();
  }
  google::protobuf::Arena memory;
  const auto message = decode(body, memory);
  auto taken = message ? state.listener->on_message(node, **message) : Result<void>(message.error());
  if (!taken) return std::move(taken).error();
  return Said{.flows = (*message)->has_flows(), .links = (*message)->has_links()};
}

/// Until the session ends; why. Empty: the server stopped, or a newer session took its place.
asio::awaitable<std::string> AgentServer::read_messages(std::shared_ptr<State> state,
                                                        std::shared_ptr<Session> session) {
  const std::string& name = session->node();
  Pace frames(state->limits.frames_per_s, state->limits.frames_burst);
  Pace bytes(state->limits.bytes_per_s, state->limits.bytes_burst);
  auto last_report = std::chrono::steady_clock::now();
  bool told = false;
  while (true) {
    auto body = co_await session->connection->read(state->silence_limit);
    if (state->listener == nullptr) co_return "";
    const auto current = state->sessions.find(name);
    if (current == state->sessions.end() || current->second != session) co_return "";
    if (!body) co_return body.error().message;
    const auto said = take(*state, name, *body);
    if (!said) {
      ++state->counters.broken;
      co_return said.error().message;
    }
    const auto now = std::chrono::steady_clock::now();
    if (said->flows || (session->of_switch && said->links)) last_report = now;
    if (now - last_report > state->silence_limit && !session->connection->input_waits()) {
      co_return std::string("no ") + (session->of_switch ? "link" : "flow") + " report for " +
          std::to_string(state->silence_limit.count()) + " ms";
    }
    const std::int64_t now_ns = monotonic_ns();
    const std::int64_t owed_ns =
        std::max(frames.take(1, now_ns), bytes.take(static_cast<double>(body->size()), now_ns));
    if (owed_ns == 0) continue;
    ++state->counters.slowed;
    if (!std::exchange(told, true)) spdlog::warn("agent {} sends more than its limits; it is read more slowly", name);
    co_await pause(state->acceptor.get_executor(), std::min(std::chrono::nanoseconds(owed_ns), kLongestPause));
    if (state->listener == nullptr) co_return "";
  }
}

}  // namespace te
