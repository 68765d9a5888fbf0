// SPDX-License-Identifier: Apache-2.0
#include "te-controller/app/access.h"

#include <openssl/crypto.h>

#include <algorithm>
#include <array>
#include <utility>

#include "common/net/certificates.h"
#include "common/net/tls.h"
#include "common/yaml/yaml_reader.h"

namespace te {
namespace {

constexpr std::array<std::pair<std::string_view, Role>, 3> kRoles{
    {{"view", Role::kView}, {"operate", Role::kOperate}, {"isolate", Role::kIsolate}}};
constexpr std::array<std::string_view, 7> kOperatorsCalls{"/v1/act",   "/v1/pause", "/v1/resume", "/v1/pin",
                                                          "/v1/unpin", "/v1/drain", "/v1/undrain"};
constexpr std::size_t kHashDigits = 64;

Result<ApiToken> read_token(const YamlReader& map) {
  if (auto known = map.only_keys({"name", "role", "sha256"}); !known) return std::move(known).error();
  auto name = map.string("name");
  auto role = map.string("role");
  auto hash = map.string("sha256");
  for (auto* read : {&name, &role, &hash})
    if (!*read) return std::move(*read).error();
  const auto parsed = parse_role(*role);
  if (!parsed) return map.error("expected the role view, operate or isolate, found '" + *role + "'");
  const bool digits = std::all_of(hash->begin(), hash->end(), [](char letter) {
    return (letter >= '0' && letter <= '9') || (letter >= 'a' && letter <= 'f');
  });
  if (hash->size() != kHashDigits || !digits)
    return map.error("expected the SHA-256 of the token, 64 lower-case hexadecimal digits");
  if (!is_certificate_name(*name)) return map.error("expected a name of letters, digits, '.', '_' and '-'");
  return ApiToken{*std::move(name), *parsed, *std::move(hash)};
}

}  // namespace

std::string_view to_string(Role role) {
  for (const auto& [name, value] : kRoles)
    if (value == role) return name;
  return "none";
}

std::optional<Role> parse_role(std::string_view text) {
  for (const auto& [name, value] : kRoles)
    if (name == text) return value;
  return std::nullopt;
}

Role role_needed(std::string_view method, std::string_view path) {
  if (method == "GET" || method == "HEAD") return Role::kView;
  const bool operators = std::find(kOperatorsCalls.begin(), kOperatorsCalls.end(), path) != kOperatorsCalls.end();
  return operators ? Role::kOperate : Role::kIsolate;
}

Result<std::vector<ApiToken>> parse_api_tokens(std::string_view text, const std::string& source) {
  const auto root = YamlReader::parse(text, source);
  if (!root) return root.error();
  if (auto known = root->only_keys({"tokens"}); !known) return std::move(known).error();
  const auto list = root->list("tokens");
  if (!list) return list.error();
  std::vector<ApiToken> tokens;
  for (const YamlReader& entry : *list) {
    auto token = read_token(entry);
    if (!token) return std::move(token).error();
    tokens.push_back(*std::move(token));
  }
  return tokens;
}

Caller Access::identify(const HttpRequest& request) const {
  const HttpPeer& peer = request.peer;
  if (peer.user_id) return {"uid " + std::to_string(*peer.user_id), Role::kIsolate, true, ""};
  if (!peer.encrypted) return {peer.address, Role::kNone, false, "this connection is not encrypted"};
  if (!request.authorization.empty()) return by_token(request);
  if (peer.certificate_name.empty()) {
    return {peer.address, Role::kNone, false, "show a client certificate, or a token in the header Authorization"};
  }
  const auto found = roles_.find(peer.certificate_name);
  const Role role = found == roles_.end() ? Role::kNone : found->second;
  return {"certificate " + printable(peer.certificate_name) + " at " + peer.address, role, true, ""};
}

Caller Access::by_token(const HttpRequest& request) const {
  Caller caller{request.peer.address, Role::kNone, false, "the token is not known here"};
  const auto token = bearer_token(request.authorization);
  if (!token) {
    caller.fault = "the header Authorization is to read 'Bearer TOKEN'";
    return caller;
  }
  const std::string hash = sha256_hex(*token);
  for (const ApiToken& known : tokens_) {
    if (CRYPTO_memcmp(known.sha256.data(), hash.data(), kHashDigits) != 0) continue;
    return {"token " + known.name + " at " + request.peer.address, known.role, true, ""};
  }
  return caller;
}

}  // namespace te
