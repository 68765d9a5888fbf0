// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <chrono>
#include <string>

#include "common/base/result.h"

namespace te {

struct ApiReply {
  int status = 0;  ///< HTTP status
  std::string body;
};

/// One call of te-controller's HTTP API on its Unix socket. An Error: nobody answered there within `limit`.
Result<ApiReply> call_api(const std::string& socket_path, const std::string& method, const std::string& target,
                          std::chrono::milliseconds limit);
/// Percent-encodes a value of a query.
[[nodiscard]] std::string query_value(const std::string& text);

}  // namespace te
