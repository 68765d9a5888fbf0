// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "common/base/result.h"
#include "te-controller/app/http_message.h"

namespace te {

/// What somebody may do; each includes those before it.
enum class Role : std::uint8_t {
  kNone,
  kView,     ///< look
  kOperate,  ///< change how traffic is engineered: act, pause, resume, pin, drain
  kIsolate,  ///< all, taking nodes out of service too
};
[[nodiscard]] std::string_view to_string(Role role);
[[nodiscard]] std::optional<Role> parse_role(std::string_view text);

/// The role that a call of the API needs. What is not known to need less needs the highest.
[[nodiscard]] Role role_needed(std::string_view method, std::string_view path);

/// A bearer token; only its hash is known here.
struct ApiToken {
  std::string name;
  Role role = Role::kNone;
  std::string sha256;  ///< 64 lower-case hexadecimal digits
};
/// Reads 'tokens: [{name: grafana, role: view, sha256: ...}]'; `source` names it in errors.
Result<std::vector<ApiToken>> parse_api_tokens(std::string_view text, const std::string& source);

/// Who asks, and what that one may do.
struct Caller {
  std::string who;  ///< "uid 0", "token grafana", "certificate alice", each with the address where there is one
  Role role = Role::kNone;
  bool known = false;  ///< false: `who` is an address only
  std::string fault;   ///< why it is not known
};

/// Tells callers apart. Whoever may open the Unix socket may do all.
class Access {
 public:
  Access() = default;
  /// `roles`: of the common names of client certificates.
  Access(std::map<std::string, Role> roles, std::vector<ApiToken> tokens)
      : roles_(std::move(roles)), tokens_(std::move(tokens)) {}

  void set_tokens(std::vector<ApiToken> tokens) { tokens_ = std::move(tokens); }
  [[nodiscard]] Caller identify(const HttpRequest& request) const;

 private:
  [[nodiscard]] Caller by_token(const HttpRequest& request) const;

  std::map<std::string, Role> roles_;
  std::vector<ApiToken> tokens_;
};

}  // namespace te
