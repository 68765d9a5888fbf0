// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <boost/asio/io_context.hpp>
#include <cstdint>
#include <memory>
#include <string>

#include "common/base/result.h"
#include "common/net/tls_source.h"
#include "te-controller/app/config.h"
#include "te-controller/app/http_message.h"

namespace te {

/// A small HTTP/1.1 server: one reply a request from a handler that runs on the io_context's thread and must not block.
/// Headers are limited to 8 KiB, bodies to 16 KiB, connections to 64 (see ConnectionTable), the first request to 2 s,
/// a TLS handshake to 5 s, silence afterwards to 10 s.
class HttpServer {
 public:
  struct Counters {
    std::uint64_t handshakes_failed = 0;  ///< TLS, but for those below
    std::uint64_t certificates_bad = 0;   ///< not signed by the authority, expired, not readable
    std::uint64_t certificates_revoked = 0;
    std::uint64_t displaced = 0;  ///< connections closed to make room for others
  };

  virtual ~HttpServer() = default;
  /// Accepts until stop().
  virtual void start() = 0;
  /// Closes the listener (a Unix socket's file is removed) and every connection.
  virtual void stop() = 0;
  [[nodiscard]] virtual Counters counters() const = 0;
  /// Of a TCP listener: as configured, or what the kernel chose for port 0.
  [[nodiscard]] virtual std::uint16_t port() const = 0;

  /// On a Unix socket, mode 0660. A socket file on which nobody answers is replaced; an Error when somebody does, or
  /// when the path is something else.
  static Result<std::unique_ptr<HttpServer>> on_unix_socket(boost::asio::io_context& io, const std::string& path,
                                                            HttpHandler handler);
  /// `tls`: null for plain HTTP. A connection that began before the TLS files changed ends at its next request, with
  /// 503.
  static Result<std::unique_ptr<HttpServer>> on_tcp(boost::asio::io_context& io, const ListenAddress& address,
                                                    HttpHandler handler, std::shared_ptr<TlsSource> tls = nullptr);
};

}  // namespace te
