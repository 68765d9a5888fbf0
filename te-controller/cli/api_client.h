// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <chrono>
#include <cstdint>
#include <string>

#include "common/base/result.h"

namespace te {

/// Where te-controller's API is, and what to show there.
struct ApiTarget {
  std::string socket_path{};  ///< of a Unix socket; empty: over TCP
  std::string host{};         ///< name or address
  std::uint16_t port = 0;
  std::string ca{};           ///< file: who signed te-controller's certificate
  std::string certificate{};  ///< file: our own; empty: none
  std::string key{};
  std::string token{};  ///< empty: none
};

/// Reads "unix:PATH", "HOST:PORT" or "[IPV6]:PORT"; an Error says what was expected.
Result<ApiTarget> parse_api_target(const std::string& text);

struct ApiReply {
  int status = 0;  ///< HTTP status
  std::string body;
};

/// One call of te-controller's HTTP API. Over TCP its certificate must be signed by `ca` and be for the host, or for
/// 'te-controller'. An Error: nobody answered there within `limit`; it says what to do.
Result<ApiReply> call_api(const ApiTarget& api, const std::string& method, const std::string& path,
                          std::chrono::milliseconds limit, const std::string& body = "");
/// Percent-encodes a value of a query.
[[nodiscard]] std::string query_value(const std::string& text);
/// The text of {"error": TEXT}; `body` itself when it is something else.
[[nodiscard]] std::string error_text(const std::string& body);

}  // namespace te
