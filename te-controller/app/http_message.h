// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <functional>
#include <map>
#include <optional>
#include <string>
#include <string_view>

#include "common/base/result.h"

namespace te {

/// Who is at the other end of a connection, as far as the transport knows.
struct HttpPeer {
  std::string address;              ///< of TCP; empty on a Unix socket
  std::optional<unsigned> user_id;  ///< of the process at the other end of a Unix socket
  std::string certificate_name;     ///< common name of a certificate that was checked; empty: none was shown
  bool encrypted = false;           ///< TLS
};

struct HttpRequest {
  std::string method;  ///< "GET", "POST", ...
  std::string path;
  std::map<std::string, std::string> query;  ///< decoded
  std::string body{};
  std::string authorization{};  ///< that header, as it is
  HttpPeer peer{};
  std::string who{};  ///< who asks, once that is known: for logs and the ledger
};

struct HttpReply {
  int status = 200;
  std::string content_type = "application/json";
  std::string body;
};

using HttpHandler = std::function<HttpReply(const HttpRequest&)>;

/// Splits a request target ("/v1/flows?node=h1") into path and query and undoes percent encoding. An Error when it is
/// malformed, or says something twice.
Result<HttpRequest> parse_target(std::string_view method, std::string_view target);
/// The token of "Bearer TOKEN"; nothing when the header is of another kind or malformed.
[[nodiscard]] std::optional<std::string> bearer_token(std::string_view authorization);
/// {"error": TEXT}.
[[nodiscard]] HttpReply error_reply(int status, const std::string& text);

}  // namespace te
