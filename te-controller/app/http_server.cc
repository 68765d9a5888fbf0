// SPDX-License-Identifier: Apache-2.0
#include "te-controller/app/http_server.h"

#include <sys/stat.h>
#include <unistd.h>

#include <boost/asio/co_spawn.hpp>
#include <boost/asio/detached.hpp>
#include <boost/asio/ip/tcp.hpp>
#include <boost/asio/local/stream_protocol.hpp>
#include <boost/asio/redirect_error.hpp>
#include <boost/asio/steady_timer.hpp>
#include <boost/asio/use_awaitable.hpp>
#include <boost/beast/core/basic_stream.hpp>
#include <boost/beast/core/flat_buffer.hpp>
#include <boost/beast/http.hpp>
#include <chrono>
#include <set>
#include <utility>

#include "common/os/file.h"

namespace te {
namespace {

namespace asio = boost::asio;
namespace beast = boost::beast;
namespace http = beast::http;

constexpr std::uint32_t kHeaderLimitBytes = 8192;
constexpr std::uint64_t kBodyLimitBytes = 4096;
constexpr std::size_t kConnectionLimit = 64;
constexpr std::chrono::seconds kIdleLimit{10};
constexpr std::chrono::milliseconds kAcceptBackoff{100};  // out of descriptors: wait, do not spin

http::response<http::string_body> make_response(HttpReply reply, unsigned version, bool keep_alive) {
  http::response<http::string_body> response(static_cast<http::status>(reply.status), version);
  response.set(http::field::content_type, reply.content_type);
  response.set(http::field::cache_control, "no-store");
  response.keep_alive(keep_alive);
  response.body() = std::move(reply.body);
  response.prepare_payload();
  return response;
}

HttpReply error_reply(int status, const std::string& text) {
  return HttpReply{.status = status, .content_type = "application/json", .body = "{\"error\": \"" + text + "\"}"};
}

template <class Protocol>
class BasicServer final : public HttpServer {
 public:
  using Stream = beast::basic_stream<Protocol>;

  BasicServer(typename Protocol::acceptor acceptor, HttpHandler handler, std::string socket_path)
      : state_(std::make_shared<State>(std::move(acceptor), std::move(handler))),
        socket_path_(std::move(socket_path)) {}
  BasicServer(const BasicServer&) = delete;
  BasicServer& operator=(const BasicServer&) = delete;
  ~BasicServer() override { close_all(); }

  void start() override { asio::co_spawn(state_->acceptor.get_executor(), accept_loop(state_), asio::detached); }
  void stop() override { close_all(); }

 private:
  /// Shared with the coroutines, which may end after the server.
  struct State {
    State(typename Protocol::acceptor listening, HttpHandler answering)
        : acceptor(std::move(listening)), handler(std::move(answering)) {}
    typename Protocol::acceptor acceptor;
    HttpHandler handler;
    std::set<Stream*> connections;
  };

  void close_all() {
    boost::system::error_code ignored;
    state_->acceptor.close(ignored);
    for (Stream* connection : state_->connections) connection->close();
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
      if (failed || state->connections.size() >= kConnectionLimit) continue;  // a refused socket closes here
      asio::co_spawn(state->acceptor.get_executor(), serve(state, Stream(std::move(socket))), asio::detached);
    }
  }

  static asio::awaitable<void> serve(std::shared_ptr<State> state, Stream stream) {
    state->connections.insert(&stream);
    beast::flat_buffer buffer(kHeaderLimitBytes + kBodyLimitBytes);
    bool keep_alive = true;
    while (keep_alive) {
      http::request_parser<http::string_body> parser;
      parser.header_limit(kHeaderLimitBytes);
      parser.body_limit(kBodyLimitBytes);
      stream.expires_after(kIdleLimit);
      boost::system::error_code failed;
      co_await http::async_read(stream, buffer, parser, asio::redirect_error(asio::use_awaitable, failed));
      const bool too_large = failed == http::error::body_limit || failed == http::error::header_limit ||
                             failed == http::error::buffer_overflow;
      const bool malformed = failed.category() == http::make_error_code(http::error::bad_method).category() &&
                             failed != http::error::end_of_stream && failed != http::error::partial_message;
      if (failed && !malformed) break;
      keep_alive = !failed && parser.get().keep_alive();
      auto response =
          failed ? make_response(error_reply(too_large ? 413 : 400, "the request cannot be read: " + failed.message()),
                                 11, false)
                 : make_response(answer(*state, parser.get()), parser.get().version(), keep_alive);
      stream.expires_after(kIdleLimit);
      co_await http::async_write(stream, response, asio::redirect_error(asio::use_awaitable, failed));
      if (failed) break;
    }
    state->connections.erase(&stream);
  }

  static HttpReply answer(State& state, const http::request<http::string_body>& request) {
    const auto method = request.method_string();
    const auto target = request.target();
    const auto parsed = parse_target({method.data(), method.size()}, {target.data(), target.size()});
    return parsed ? state.handler(*parsed) : error_reply(400, "the request target cannot be read");
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
      std::make_unique<BasicServer<Protocol>>(std::move(acceptor), std::move(handler), path));
}

Result<std::unique_ptr<HttpServer>> HttpServer::on_tcp(asio::io_context& io, const ListenAddress& address,
                                                       HttpHandler handler) {
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
      std::make_unique<BasicServer<Protocol>>(std::move(acceptor), std::move(handler), ""));
}

}  // namespace te
