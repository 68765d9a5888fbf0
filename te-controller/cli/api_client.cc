// SPDX-License-Identifier: Apache-2.0
#include "te-controller/cli/api_client.h"

#include <google/protobuf/struct.pb.h>
#include <google/protobuf/util/json_util.h>
#include <openssl/x509v3.h>

#include <boost/asio/co_spawn.hpp>
#include <boost/asio/connect.hpp>
#include <boost/asio/detached.hpp>
#include <boost/asio/io_context.hpp>
#include <boost/asio/local/stream_protocol.hpp>
#include <boost/asio/redirect_error.hpp>
#include <boost/asio/ssl/error.hpp>
#include <boost/asio/use_awaitable.hpp>
#include <boost/beast/core/flat_buffer.hpp>
#include <boost/beast/http.hpp>
#include <charconv>
#include <optional>

#include "common/net/tls.h"

namespace te {
namespace {

namespace asio = boost::asio;
namespace http = boost::beast::http;
using Request = http::request<http::string_body>;

constexpr std::uint64_t kBodyLimitBytes = std::uint64_t{256} << 20;
constexpr std::size_t kLongestSocketPath = 107;  // sun_path, without its end

std::string name_of(const ApiTarget& api) {
  if (!api.socket_path.empty()) return api.socket_path;
  return (api.host.find(':') == std::string::npos ? api.host : "[" + api.host + "]") + ":" + std::to_string(api.port);
}

std::string hint_for(const ApiTarget& api, const boost::system::error_code& problem) {
  if (problem == asio::error::access_denied) return "the socket is open to root and its group only";
  if (!api.socket_path.empty()) return "is te-controller running, and is this its 'api: unix:' path?";
  if (problem == asio::error::connection_refused)
    return "nothing listens there: is te-controller running, and is this its 'api: listen:' address?";
  if (problem == asio::error::host_not_found || problem == asio::error::host_not_found_try_again)
    return "no such host; correct the name, or give its address";
  const bool ended = problem == asio::error::connection_reset || problem == asio::error::broken_pipe ||
                     problem == asio::error::eof || problem == http::error::end_of_stream ||
                     problem == asio::ssl::error::stream_truncated;
  if (ended || problem.category() == asio::error::get_ssl_category())
    return "it speaks no TLS, or does not accept what --cert shows (expired, revoked, or of another authority)";
  return "is the address right, and is there a route and no firewall between?";
}

Error unreachable(const ApiTarget& api, const boost::system::error_code& problem) {
  return Error{"cannot reach te-controller at " + name_of(api) + ": " + problem.message() + "; " +
               hint_for(api, problem)};
}

template <class Stream>
asio::awaitable<Result<ApiReply>> exchange(const ApiTarget& api, Stream& stream, const Request& request) {
  boost::system::error_code failed;
  co_await http::async_write(stream, request, asio::redirect_error(asio::use_awaitable, failed));
  if (failed) co_return unreachable(api, failed);
  boost::beast::flat_buffer buffer;
  http::response_parser<http::string_body> parser;
  parser.body_limit(kBodyLimitBytes);
  co_await http::async_read(stream, buffer, parser, asio::redirect_error(asio::use_awaitable, failed));
  if (failed) co_return unreachable(api, failed);
  co_return ApiReply{.status = static_cast<int>(parser.get().result_int()), .body = std::move(parser.get().body())};
}

asio::awaitable<Result<ApiReply>> call_local(const ApiTarget& api, const Request& request) {
  asio::local::stream_protocol::socket socket(co_await asio::this_coro::executor);
  boost::system::error_code failed;
  co_await socket.async_connect(asio::local::stream_protocol::endpoint(api.socket_path),
                                asio::redirect_error(asio::use_awaitable, failed));
  if (failed) co_return unreachable(api, failed);
  co_return co_await exchange(api, socket, request);
}

/// An address needs no resolver.
asio::awaitable<Result<std::vector<asio::ip::tcp::endpoint>>> resolve(const ApiTarget& api) {
  boost::system::error_code failed;
  const auto address = asio::ip::make_address(api.host, failed);
  if (!failed) co_return std::vector{asio::ip::tcp::endpoint(address, api.port)};
  asio::ip::tcp::resolver resolver(co_await asio::this_coro::executor);
  const auto found = co_await resolver.async_resolve(api.host, std::to_string(api.port),
                                                     asio::redirect_error(asio::use_awaitable, failed));
  if (failed) co_return unreachable(api, failed);
  std::vector<asio::ip::tcp::endpoint> endpoints;
  for (const auto& entry : found) endpoints.push_back(entry.endpoint());
  co_return endpoints;
}

/// The token goes only to a server that is te-controller: by the name we called it, or by its own.
Result<void> check_server(const ApiTarget& api, TlsStream& stream) {
  const auto peer = peer_identity(stream.native_handle());
  if (!peer) return peer.error();
  X509* const shown = peer->certificate.get();
  const bool by_host =
      X509_check_host(shown, api.host.c_str(), api.host.size(), X509_CHECK_FLAG_NEVER_CHECK_SUBJECT, nullptr) == 1 ||
      X509_check_ip_asc(shown, api.host.c_str(), 0) == 1;
  if (by_host || peer->facts.name == kControllerName) return {};
  return Error{name_of(api) + " shows the certificate of '" + printable(peer->facts.name) +
               "', which is neither for '" + api.host + "' nor for 'te-controller'; correct --api"};
}

Result<std::shared_ptr<asio::ssl::context>> client_context(const ApiTarget& api) {
  if (api.ca.empty())
    return Error{"over TCP, --ca FILE (or $TECTL_CA) must name the authority that signed te-controller's certificate"};
  if (api.certificate.empty()) return make_tls_context_without_certificate(api.ca);
  return make_tls_context({api.certificate, api.key, api.ca}, TlsSide::kClient);
}

asio::awaitable<Result<ApiReply>> call_remote(const ApiTarget& api, const Request& request) {
  const auto endpoints = co_await resolve(api);
  if (!endpoints) co_return endpoints.error();
  asio::ip::tcp::socket socket(co_await asio::this_coro::executor);
  boost::system::error_code failed;
  co_await asio::async_connect(socket, *endpoints, asio::redirect_error(asio::use_awaitable, failed));
  if (failed) co_return unreachable(api, failed);
  const auto context = client_context(api);
  if (!context) co_return context.error();
  TlsStream stream(std::move(socket), **context);
  co_await stream.async_handshake(asio::ssl::stream_base::client, asio::redirect_error(asio::use_awaitable, failed));
  const long verdict = SSL_get_verify_result(stream.native_handle());
  if (failed && verdict != X509_V_OK) {
    co_return Error{"the certificate of te-controller at " + name_of(api) + " is not trusted: " +
                    X509_verify_cert_error_string(verdict) + "; --ca names the authority that signed it"};
  }
  if (failed) co_return unreachable(api, failed);
  if (const auto right = check_server(api, stream); !right) co_return right.error();
  co_return co_await exchange(api, stream, request);
}

}  // namespace

Result<ApiTarget> parse_api_target(const std::string& text) {
  ApiTarget api;
  const Error wrong{"'" + text + "' is no place of an API; expected unix:PATH or HOST:PORT, as in 10.0.0.5:7414"};
  if (text.starts_with("unix:") || text.starts_with("/")) {
    api.socket_path = text.substr(text.starts_with("/") ? 0 : 5);
    if (api.socket_path.empty()) return wrong;
    if (api.socket_path.size() > kLongestSocketPath)
      return Error{api.socket_path + ": a Unix socket's path has at most " + std::to_string(kLongestSocketPath) +
                   " bytes"};
    return api;
  }
  const std::size_t colon = text.rfind(':');
  if (colon == std::string::npos) return wrong;
  const char* const begin = text.data() + colon + 1;
  const char* const end = text.data() + text.size();
  const auto [stopped, problem] = std::from_chars(begin, end, api.port);
  api.host = text.substr(0, colon);
  const bool bracketed = api.host.size() > 2 && api.host.front() == '[' && api.host.back() == ']';
  if (bracketed) api.host = api.host.substr(1, api.host.size() - 2);
  const bool ambiguous = !bracketed && api.host.find(':') != std::string::npos;
  if (problem != std::errc() || stopped != end || api.port == 0 || api.host.empty() || ambiguous) return wrong;
  return api;
}

Result<ApiReply> call_api(const ApiTarget& api, const std::string& method, const std::string& path,
                          std::chrono::milliseconds limit, const std::string& body) {
  Request request(http::string_to_verb(method), path, 11);
  request.set(http::field::host, api.socket_path.empty() ? api.host : kControllerName);
  if (!api.token.empty()) request.set(http::field::authorization, "Bearer " + api.token);
  request.keep_alive(false);
  request.body() = body;
  if (!body.empty()) request.set(http::field::content_type, "application/json");
  request.prepare_payload();
  asio::io_context io(1);
  std::optional<Result<ApiReply>> reply;
  asio::co_spawn(
      io,
      [&]() -> asio::awaitable<void> {
        if (api.socket_path.empty()) {
          reply = co_await call_remote(api, request);
        } else {
          reply = co_await call_local(api, request);
        }
      },
      asio::detached);
  io.run_for(limit);
  if (reply) return *std::move(reply);
  return Error{"te-controller at " + name_of(api) + " did not answer within " + std::to_string(limit.count()) +
               " ms; is the address right, is it running, and does a firewall let it through?"};
}

std::string query_value(const std::string& text) {
  constexpr std::string_view kHex = "0123456789ABCDEF";
  std::string encoded;
  for (const char letter : text) {
    const auto byte = static_cast<unsigned char>(letter);
    const bool plain = (byte >= 'a' && byte <= 'z') || (byte >= 'A' && byte <= 'Z') || (byte >= '0' && byte <= '9') ||
                       byte == '-' || byte == '.' || byte == '_' || byte == ':';
    if (plain) {
      encoded.push_back(letter);
    } else {
      encoded += {'%', kHex[byte >> 4U], kHex[byte & 0xFU]};
    }
  }
  return encoded;
}

std::string error_text(const std::string& body) {
  google::protobuf::Struct reply;
  if (!google::protobuf::util::JsonStringToMessage(body, &reply).ok()) return body;
  const auto found = reply.fields().find("error");
  return found == reply.fields().end() ? body : found->second.string_value();
}

}  // namespace te
