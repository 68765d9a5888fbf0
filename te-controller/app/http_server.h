// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <boost/asio/io_context.hpp>
#include <memory>
#include <string>

#include "common/base/result.h"
#include "te-controller/app/config.h"
#include "te-controller/app/http_message.h"

namespace te {

/// A small HTTP/1.1 server: one reply a request from a handler that runs on the io_context's thread and must not block.
/// Headers are limited to 8 KiB, bodies to 4 KiB, connections to 64, silence to 10 s.
class HttpServer {
 public:
  virtual ~HttpServer() = default;
  /// Accepts until stop().
  virtual void start() = 0;
  /// Closes the listener (a Unix socket's file is removed) and every connection.
  virtual void stop() = 0;

  /// On a Unix socket, mode 0660. A socket file on which nobody answers is replaced; an Error when somebody does, or
  /// when the path is something else.
  static Result<std::unique_ptr<HttpServer>> on_unix_socket(boost::asio::io_context& io, const std::string& path,
                                                            HttpHandler handler);
  static Result<std::unique_ptr<HttpServer>> on_tcp(boost::asio::io_context& io, const ListenAddress& address,
                                                    HttpHandler handler);
};

}  // namespace te
