// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <functional>
#include <map>
#include <optional>
#include <string>
#include <string_view>

namespace te {

/// A request without its body: no call of the API has one.
struct HttpRequest {
  std::string method;  ///< "GET", "POST", ...
  std::string path;
  std::map<std::string, std::string> query;  ///< decoded; a repeated name keeps its last value
};

struct HttpReply {
  int status = 200;
  std::string content_type = "application/json";
  std::string body;
};

using HttpHandler = std::function<HttpReply(const HttpRequest&)>;

/// Splits a request target ("/v1/flows?node=h1") into path and query and undoes percent encoding; nothing when it is
/// malformed.
[[nodiscard]] std::optional<HttpRequest> parse_target(std::string_view method, std::string_view target);

}  // namespace te
