// SPDX-License-Identifier: Apache-2.0
#include "te-controller/app/http_message.h"

#include <algorithm>
#include <charconv>
#include <cstdio>

namespace te {
namespace {

std::optional<std::string> percent_decode(std::string_view text) {
  std::string decoded;
  for (std::size_t i = 0; i < text.size(); ++i) {
    if (text[i] == '+') {
      decoded.push_back(' ');
    } else if (text[i] != '%') {
      decoded.push_back(text[i]);
    } else {
      if (i + 2 >= text.size()) return std::nullopt;
      unsigned value = 0;
      const char* const begin = text.data() + i + 1;
      const auto [end, problem] = std::from_chars(begin, begin + 2, value, 16);
      if (problem != std::errc() || end != begin + 2) return std::nullopt;
      decoded.push_back(static_cast<char>(value));
      i += 2;
    }
  }
  return decoded;
}

}  // namespace

Result<HttpRequest> parse_target(std::string_view method, std::string_view target) {
  HttpRequest request;
  request.method = method;
  const std::size_t mark = target.find('?');
  auto path = percent_decode(target.substr(0, mark));
  if (!path || path->empty() || path->front() != '/') return Error{"it has no path like /v1/status"};
  request.path = *std::move(path);
  std::string_view rest = mark == std::string_view::npos ? std::string_view() : target.substr(mark + 1);
  while (!rest.empty()) {
    const std::size_t end = rest.find('&');
    const std::string_view pair = rest.substr(0, end);
    rest = end == std::string_view::npos ? std::string_view() : rest.substr(end + 1);
    const std::size_t equals = pair.find('=');
    auto name = percent_decode(pair.substr(0, equals));
    auto value = percent_decode(equals == std::string_view::npos ? std::string_view() : pair.substr(equals + 1));
    if (!name || !value) return Error{"a % is followed by two hexadecimal digits"};
    if (name->empty()) continue;
    const auto [place, is_new] = request.query.try_emplace(*std::move(name), *std::move(value));
    if (!is_new) return Error{"'" + place->first + "' is given twice"};
  }
  return request;
}

std::optional<std::string> bearer_token(std::string_view authorization) {
  constexpr std::string_view kScheme = "bearer ";
  if (authorization.size() <= kScheme.size()) return std::nullopt;
  const auto lower = [](char letter) {
    return letter >= 'A' && letter <= 'Z' ? static_cast<char>(letter + 32) : letter;
  };
  if (!std::equal(kScheme.begin(), kScheme.end(), authorization.begin(),
                  [&](char wanted, char found) { return wanted == lower(found); })) {
    return std::nullopt;
  }
  const std::string_view token = authorization.substr(kScheme.size());
  const bool plain = std::all_of(token.begin(), token.end(), [](char letter) { return letter > ' ' && letter < 0x7F; });
  return plain ? std::optional(std::string(token)) : std::nullopt;
}

HttpReply error_reply(int status, const std::string& text) {
  std::string json = "{\"error\":\"";
  for (const char letter : text) {
    const auto byte = static_cast<unsigned char>(letter);
    if (letter == '"' || letter == '\\') {
      json += {'\\', letter};
    } else if (byte < 0x20 || byte >= 0x7F) {
      char escaped[8];
      std::snprintf(escaped, sizeof escaped, "\\u%04x", byte < 0x20 || byte == 0x7F ? byte : '?');
      json += escaped;
    } else {
      json.push_back(letter);
    }
  }
  return HttpReply{.status = status, .content_type = "application/json", .body = json + "\"}\n"};
}

}  // namespace te
