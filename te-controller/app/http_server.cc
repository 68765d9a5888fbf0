// SPDX-License-Identifier: Apache-2.0
#include "te-controller/app/http_server.h"

#include <spdlog/spdlog.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <unistd.h>

#include <boost/asio/co_spawn.hpp>
#include <boost/asio/detached.hpp>
#include <boost/asio/ip/tcp.hpp>
#include <boost/asio/local/stream_protocol.hpp>
#include <boost/asio/redirect_error.hpp>
#include <boost/asio/ssl/stream.hpp>
#include <boost/asio/steady_timer.hpp>
#include <boost/asio/use_awaitable.hpp>
#include <boost/beast/core/basic_stream.hpp>
#include <boost/beast/core/flat_buffer.hpp>
#include <boost/beast/http.hpp>
#include <chrono>
#include <optional>
#include <type_traits>
#include <utility>

#include "common/net/pace.h"
#include "common/os/clock.h"
#include "common/os/file.h"
#include "te-controller/app/connection_table.h"

namespace te {
namespace {

namespace asio = boost::asio;
namespace beast = boost::beast;
namespace http = beast::http;

constexpr std::uint32_t kHeaderLimitBytes = 8192;
constexpr std::uint64_t kBodyLimitBytes = 16384;
constexpr std::size_t kConnectionLimit = 64;
constexpr std::chrono::seconds kFirstRequestLimit{2};
constexpr std::chrono::seconds kHandshakeLimit{5};
constexpr std::chrono::seconds kFarewellLimit{1};
constexpr std::chrono::seconds kIdleLimit{10};
constexpr double kRefusalsLoggedPerS = 10;  // strangers must not fill the disk
constexpr double kRefusalsLoggedAtOnce = 100;
constexpr std::chrono::milliseconds kAcceptBackoff{100};  // out of descriptors: wait, do not spin

template <class Protocol>
constexpr bool kIsTcp = std::is_same_v<Protocol, asio::ip::tcp>;

http::response<http::string_body> make_response(HttpReply reply, unsigned version, bool keep_alive) {
  http::response<http::string_body> response(static_cast<http::status>(reply.status), version);
  response.set(http::field::content_type, reply.content_type);
  response.set(http::field::cache_control, "no-store");
  if (reply.status == 401) response.set(http::field::www_authenticate, "Bearer");
  response.keep_alive(keep_alive);
  response.body() = std::move(reply.body);
  response.prepare_payload();
  return response;
}

std::string_view view_of(beast::string_view text) { return {text.data(), text.size()}; }

HttpReply answer(const HttpHandler& handler, const HttpPeer& peer, http::request<http::string_body>& request) {
  auto parsed = parse_target(view_of(request.method_string()), view_of(request.target()));
  if (!parsed) return error_reply(400, "the request target cannot be read: " + parsed.error().message);
  parsed->body = std::move(request.body());
  parsed->authorization = view_of(request[http::field::authorization]);
  parsed->peer = peer;
  return handler(*parsed);
}

/// Why no request came; none: the connection ended, or nothing was asked in time.
std::optional<HttpReply> fault_of(const boost::system::error_code& failed) {
  const bool too_large = failed == http::error::body_limit || failed == http::error::header_limit ||
                         failed == http::error::buffer_overflow;
  const bool malformed = failed.category() == http::make_error_code(http::error::bad_method).category() &&
                         failed != http::error::end_of_stream && failed != http::error::partial_message;
  if (!malformed) return std::nullopt;
  return error_reply(too_large ? 413 : 400, "the request cannot be read: " + failed.message());
}

/// What a Unix socket's connections are told apart by, since all may be of one user.
struct Origin {
  HttpPeer peer;
  std::string key;
};

Origin origin_of(asio::local::stream_protocol::socket& socket) {
  ucred other{};
  socklen_t length = sizeof other;
  if (::getsockopt(socket.native_handle(), SOL_SOCKET, SO_PEERCRED, &other, &length) != 0) return {};
  Origin origin;
  origin.peer.user_id = other.uid;
  origin.key = std::to_string(other.pid);
  return origin;
}

Origin origin_of(asio::ip::tcp::socket& socket) {
  boost::system::error_code ignored;
  Origin origin;
  asio::ip::address address = socket.remote_endpoint(ignored).address();
  if (address.is_v6() && address.to_v6().is_v4_mapped())  // on a listener for both
    address = asio::ip::make_address_v4(asio::ip::v4_mapped, address.to_v6());
  origin.peer.address = address.to_string();
  origin.key = origin.peer.address;
  return origin;
}

template <class Protocol>
class BasicServer final : public HttpServer {
 public:
  using Plain = beast::basic_stream<Protocol>;

  BasicServer(typename Protocol::acceptor acceptor, HttpHandler handler, std::shared_ptr<TlsSource> tls,
              std::string socket_path)
      : state_(std::make_shared<State>(std::move(acceptor), std::move(handler), std::move(tls))),
        socket_path_(std::move(socket_path)) {}
  BasicServer(const BasicServer&) = delete;
  BasicServer& operator=(const BasicServer&) = delete;
  ~BasicServer() override { close_all(); }

  void start() override { asio::co_spawn(state_->acceptor.get_executor(), accept_loop(state_), asio::detached); }
  void stop() override { close_all(); }
  [[nodiscard]] Counters counters() const override {
    Counters counters = state_->counters;
    counters.displaced = state_->connections.displaced();
    return counters;
  }
  [[nodiscard]] std::uint16_t port() const override {
    if constexpr (kIsTcp<Protocol>) {
      boost::system::error_code ignored;
      return state_->acceptor.local_endpoint(ignored).port();
    }
    return 0;
  }

 private:
  /// Shared with the coroutines, which may end after the server.
  struct State {
    State(typename Protocol::acceptor listening, HttpHandler answering, std::shared_ptr<TlsSource> source)
        : acceptor(std::move(listening)), handler(std::move(answering)), tls(std::move(source)) {}
    typename Protocol::acceptor acceptor;
    HttpHandler handler;
    std::shared_ptr<TlsSource> tls;
    ConnectionTable connections{kConnectionLimit};
    Counters counters;
    Pace refusals_logged{kRefusalsLoggedPerS, kRefusalsLoggedAtOnce};
  };

  void close_all() {
    boost::system::error_code ignored;
    state_->acceptor.close(ignored);
    state_->connections.close_all();
    if (!socket_path_.empty()) ::unlink(std::exchange(socket_path_, "").c_str());
  }

  static asio::awaitable<void> accept_loop(std::shared_ptr<State> state) {
    while (state->acceptor.is_open()) {
      boost::system::error_code failed;
      typename Protocol::socket socket =
          co_await state->acceptor.async_accept(asio::redirect_error(asio::use_awaitable, failed));
      if (failed && state->acceptor.is_open()) {
        asio::steady_timer pause(state->acceptor.get_executor(), kAcceptBackoff);
        co_await pause.async_wait(asio::redirect_error(asio::use_awaitable, failed));
        continue;
      }
      if (failed) continue;
      asio::co_spawn(state->acceptor.get_executor(), serve(state, std::move(socket)), asio::detached);
    }
  }

  static asio::awaitable<void> serve(std::shared_ptr<State> state, typename Protocol::socket socket) {
    const Origin origin = origin_of(socket);
    Plain plain(std::move(socket));
    const std::uint64_t number = state->connections.enter(origin.key, [&plain] { plain.close(); });
    bool secured = false;
    if constexpr (kIsTcp<Protocol>) {
      if (state->tls) co_await serve_tls(state, plain, origin.peer);
      secured = state->tls != nullptr;
    }
    if (!secured) co_await serve_requests(state, plain, plain, origin.peer, nullptr);
    state->connections.leave(number);
  }

  static asio::awaitable<void> serve_tls(std::shared_ptr<State> state, Plain& plain, HttpPeer peer) {
    const auto context = state->tls->context();
    const auto problem = std::make_shared<CertificateProblem>();
    asio::ssl::stream<Plain&> stream(plain, *context);
    stream.set_verify_callback(note_problem(problem));
    plain.expires_after(kHandshakeLimit);
    boost::system::error_code failed;
    co_await stream.async_handshake(asio::ssl::stream_base::server, asio::redirect_error(asio::use_awaitable, failed));
    if (failed) {
      refuse(*state, peer, *problem, failed);
      co_return;
    }
    peer.encrypted = true;
    if (const auto shown = peer_identity(stream.native_handle())) peer.certificate_name = shown->facts.name;
    co_await serve_requests(state, stream, plain, peer, context);
    plain.expires_after(kFarewellLimit);
    co_await stream.async_shutdown(asio::redirect_error(asio::use_awaitable, failed));
  }

  static void refuse(State& state, const HttpPeer& peer, const CertificateProblem& problem,
                     const boost::system::error_code& failed) {
    ++(problem.revoked           ? state.counters.certificates_revoked
       : !problem.reason.empty() ? state.counters.certificates_bad
                                 : state.counters.handshakes_failed);
    if (!state.refusals_logged.try_take(1, monotonic_ns())) return;
    spdlog::warn("refused API client at {}: {}", peer.address, problem.text("TLS handshake: " + failed.message()));
  }

  /// `plain` carries `stream` and keeps its time limits; `context` is that of its handshake.
  template <class Stream>
  static asio::awaitable<void> serve_requests(std::shared_ptr<State> state, Stream& stream, Plain& plain, HttpPeer peer,
                                              std::shared_ptr<asio::ssl::context> context) {
    beast::flat_buffer buffer(kHeaderLimitBytes + kBodyLimitBytes);
    auto limit = kFirstRequestLimit;
    bool keep_alive = true;
    while (keep_alive) {
      http::request_parser<http::string_body> parser;
      parser.header_limit(kHeaderLimitBytes);
      parser.body_limit(kBodyLimitBytes);
      plain.expires_after(limit);
      limit = kIdleLimit;
      boost::system::error_code failed;
      co_await http::async_read(stream, buffer, parser, asio::redirect_error(asio::use_awaitable, failed));
      auto fault = failed ? fault_of(failed) : std::nullopt;
      if (failed && !fault) co_return;
      const bool outdated = context && context != state->tls->context();  // the certificate may not be good any more
      if (outdated) fault = error_reply(503, "certificates were changed meanwhile; connect anew");
      keep_alive = !fault && parser.get().keep_alive();
      auto response =
          fault ? make_response(*std::move(fault), 11, false)
                : make_response(answer(state->handler, peer, parser.get()), parser.get().version(), keep_alive);
      plain.expires_after(kIdleLimit);
      co_await http::async_write(stream, response, asio::redirect_error(asio::use_awaitable, failed));
      if (failed) co_return;
    }
  }

  std::shared_ptr<State> state_;
  std::string socket_path_;
};

/// Makes room for a new socket at `path`.
Result<void> remove_stale_socket(asio::io_context& io, const std::string& path) {
  struct stat found {};
  if (::lstat(path.c_str(), &found) != 0) return {};
  if (!S_ISSOCK(found.st_mode)) return Error{"listen on " + path + ": there is a file of another kind; move it away"};
  asio::local::stream_protocol::socket probe(io);
  boost::system::error_code refused;
  probe.connect(asio::local::stream_protocol::endpoint(path), refused);
  if (!refused) return Error{"listen on " + path + ": another te-controller answers there; stop it first"};
  if (refused != asio::error::connection_refused) return Error{"listen on " + path + ": " + refused.message()};
  if (::unlink(path.c_str()) != 0) return errno_error("remove the stale socket " + path);
  return {};
}

}  // namespace

Result<std::unique_ptr<HttpServer>> HttpServer::on_unix_socket(asio::io_context& io, const std::string& path,
                                                               HttpHandler handler) {
  using Protocol = asio::local::stream_protocol;
  if (path.size() > 107)
    return Error{"listen on " + path + ": a Unix socket's path has at most 107 bytes"};  // sun_path
  const auto free = remove_stale_socket(io, path);
  if (!free) return free.error();
  Protocol::acceptor acceptor(io);
  boost::system::error_code failed;
  acceptor.open(Protocol(), failed);
  if (!failed) acceptor.bind(Protocol::endpoint(path), failed);
  if (failed) return Error{"listen on " + path + ": " + failed.message()};
  // Nobody can connect before listen(), so the mode is right from the first connection on.
  if (::chmod(path.c_str(), 0660) != 0) return errno_error("set the mode of " + path);
  acceptor.listen(Protocol::acceptor::max_listen_connections, failed);
  if (failed) return Error{"listen on " + path + ": " + failed.message()};
  return std::unique_ptr<HttpServer>(
      std::make_unique<BasicServer<Protocol>>(std::move(acceptor), std::move(handler), nullptr, path));
}

Result<std::unique_ptr<HttpServer>> HttpServer::on_tcp(asio::io_context& io, const ListenAddress& address,
                                                       HttpHandler handler, std::shared_ptr<TlsSource> tls) {
  using Protocol = asio::ip::tcp;
  const std::string where = "listen on " + address.host + " port " + std::to_string(address.port);
  boost::system::error_code failed;
  const auto host = asio::ip::make_address(address.host, failed);
  if (failed) return Error{where + ": " + failed.message()};
  const Protocol::endpoint endpoint(host, address.port);
  Protocol::acceptor acceptor(io);
  acceptor.open(endpoint.protocol(), failed);
  if (!failed) acceptor.set_option(Protocol::acceptor::reuse_address(true), failed);
  if (!failed) acceptor.bind(endpoint, failed);
  if (!failed) acceptor.listen(Protocol::acceptor::max_listen_connections, failed);
  if (failed) return Error{where + ": " + failed.message()};
  return std::unique_ptr<HttpServer>(
      std::make_unique<BasicServer<Protocol>>(std::move(acceptor), std::move(handler), std::move(tls), ""));
}

}  // namespace te
