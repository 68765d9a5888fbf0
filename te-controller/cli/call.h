// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <google/protobuf/message.h>

#include <functional>
#include <string>

#include "common/base/result.h"
#include "te-controller/cli/api_client.h"

namespace te {

/// Exit statuses of tectl.
inline constexpr int kOk = 0;
inline constexpr int kRefused = 1;
inline constexpr int kUsage = 2;
inline constexpr int kUnreachable = 3;
inline constexpr int kNobodyReads = -1;  ///< nobody reads on: stop, as if done

/// What holds for every call.
struct CallOptions {
  std::string api;  ///< as written
  std::string ca;   ///< files; empty: none
  std::string certificate;
  std::string key;
  std::string token_file;
  bool json = false;
  double watch_s = 0;  ///< 0: once
};
/// Where to call, with the token read from its file.
Result<ApiTarget> target_of(const CallOptions& options);

/// One call: how to ask, and how to show the answer to people.
struct Call {
  std::string method = "GET";
  std::string path;
  std::function<std::string(const std::string& json, bool colour)> render;
};

/// Reads the JSON of a reply; false when it cannot be. Fields of a newer version are passed over.
bool read_reply(const std::string& json, google::protobuf::Message& message);

/// Asks and shows, once or again and again; an exit status.
int run_call(const CallOptions& options, const Call& call);
/// Shows what happened; with `follow` what happens, until interrupted. An exit status.
int run_events(const CallOptions& options, bool follow, int limit);

/// Writes to standard output; an exit status.
int show(const std::string& text);
/// Writes "tectl: MESSAGE" to standard error; returns `status`.
int complain(const std::string& message, int status);
[[nodiscard]] bool colour_wanted();

}  // namespace te
