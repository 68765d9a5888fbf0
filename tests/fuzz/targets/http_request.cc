// SPDX-License-Identifier: Apache-2.0
// What an HTTP client sends, as far as we read it ourselves: a line "METHOD TARGET", a line with the header
// Authorization, and what an error would quote of it.
#include <google/protobuf/struct.pb.h>
#include <google/protobuf/util/json_util.h>

#include <cstddef>
#include <cstdint>

#include "te-controller/app/access.h"
#include "te-controller/app/http_message.h"

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  std::string_view rest(reinterpret_cast<const char*>(data), size);
  const auto line = [&rest] {
    const std::string_view first = rest.substr(0, rest.find('\n'));
    rest.remove_prefix(std::min(rest.size(), first.size() + 1));
    return first;
  };
  const std::string_view start = line();
  const std::string_view authorization = line();
  const std::size_t space = std::min(start.find(' '), start.size());
  const std::string_view method = start.substr(0, space);
  auto request = te::parse_target(method, start.substr(std::min(start.size(), space + 1)));
  if (const auto token = te::bearer_token(authorization)) {
    TE_CHECK(!token->empty() && token->find_first_of(" \r\n") == std::string::npos, "a token is one word");
  }
  google::protobuf::Struct json;
  const auto error = te::error_reply(400, std::string(rest));
  TE_CHECK(google::protobuf::util::JsonStringToMessage(error.body, &json).ok(), "an error is not JSON");
  if (!request) return 0;
  TE_CHECK(request->path.front() == '/', "a path begins with a slash");
  request->authorization = authorization;
  request->peer = {.address = "10.0.0.1", .user_id = {}, .certificate_name = "", .encrypted = true};
  const te::Caller caller = te::Access().identify(*request);
  TE_CHECK(!caller.known && caller.role < te::role_needed(method, request->path), "a stranger may do something");
  return 0;
}
