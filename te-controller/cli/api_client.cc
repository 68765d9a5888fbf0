// SPDX-License-Identifier: Apache-2.0
#include "te-controller/cli/api_client.h"

#include <boost/asio/co_spawn.hpp>
#include <boost/asio/detached.hpp>
#include <boost/asio/io_context.hpp>
#include <boost/asio/local/stream_protocol.hpp>
#include <boost/asio/redirect_error.hpp>
#include <boost/asio/use_awaitable.hpp>
#include <boost/beast/core/flat_buffer.hpp>
#include <boost/beast/http.hpp>
#include <optional>

namespace te {
namespace {

namespace asio = boost::asio;
namespace http = boost::beast::http;

constexpr std::uint64_t kBodyLimitBytes = std::uint64_t{256} << 20;

Error unreachable(const std::string& path, const boost::system::error_code& problem) {
  std::string hint = "is te-controller running, and is this its 'api: unix:' path?";
  if (problem == asio::error::access_denied) hint = "the socket is open to root and its group only";
  return Error{"cannot reach te-controller at " + path + ": " + problem.message() + "; " + hint};
}

asio::awaitable<Result<ApiReply>> exchange(std::string path, http::request<http::empty_body> request) {
  asio::local::stream_protocol::socket socket(co_await asio::this_coro::executor);
  boost::system::error_code failed;
  co_await socket.async_connect(asio::local::stream_protocol::endpoint(path),
                                asio::redirect_error(asio::use_awaitable, failed));
  if (failed) co_return unreachable(path, failed);
  co_await http::async_write(socket, request, asio::redirect_error(asio::use_awaitable, failed));
  if (failed) co_return unreachable(path, failed);
  boost::beast::flat_buffer buffer;
  http::response_parser<http::string_body> parser;
  parser.body_limit(kBodyLimitBytes);
  co_await http::async_read(socket, buffer, parser, asio::redirect_error(asio::use_awaitable, failed));
  if (failed) co_return unreachable(path, failed);
  co_return ApiReply{.status = static_cast<int>(parser.get().result_int()), .body = std::move(parser.get().body())};
}

}  // namespace

Result<ApiReply> call_api(const std::string& socket_path, const std::string& method, const std::string& target,
                          std::chrono::milliseconds limit) {
  if (socket_path.size() > 107) return Error{socket_path + ": a Unix socket's path has at most 107 bytes"};  // sun_path
  http::request<http::empty_body> request(http::string_to_verb(method), target, 11);
  request.set(http::field::host, "te-controller");
  request.keep_alive(false);
  asio::io_context io(1);
  std::optional<Result<ApiReply>> reply;
  asio::co_spawn(
      io, [&]() -> asio::awaitable<void> { reply = co_await exchange(socket_path, request); }, asio::detached);
  io.run_for(limit);
  if (!reply) {
    return Error{"te-controller at " + socket_path + " did not answer within " + std::to_string(limit.count()) + " ms"};
  }
  return *std::move(reply);
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

}  // namespace te
