// SPDX-License-Identifier: Apache-2.0
#include "te-controller/app/gate.h"

#include <spdlog/spdlog.h>

#include "common/net/tls.h"
#include "common/os/clock.h"

namespace te {

HttpReply Gate::answer(HttpRequest request) {
  if (request.path == "/v1/enrol") return enrolment_->answer(request);
  const Caller caller = access_.identify(request);
  const Role needed = role_needed(request.method, request.path);
  if (!caller.known || caller.role < needed) return refuse(request, caller, needed);
  request.who = caller.who;
  HttpReply reply = api_->answer(request);
  if (needed > Role::kView) {
    std::string query;
    for (const auto& [name, value] : request.query) query += (query.empty() ? "?" : "&") + name + "=" + value;
    spdlog::info("{} asked for {} {}{}: {}", caller.who, request.method, printable(request.path), printable(query),
                 reply.status == 200 ? "done" : "refused, " + std::to_string(reply.status));
  }
  return reply;
}

HttpReply Gate::refuse(const HttpRequest& request, const Caller& caller, Role needed) {
  const bool known = caller.known;
  ++refused_[known ? "role" : request.authorization.empty() ? "unauthenticated" : "unknown_token"];
  const std::string call = request.method + " " + printable(request.path);
  const std::string why = known ? call + " needs the role '" + std::string(to_string(needed)) + "', and " + caller.who +
                                      " has '" + std::string(to_string(caller.role)) + "'"
                                : call + " needs the role '" + std::string(to_string(needed)) + "': " + caller.fault;
  if (refusals_logged_.try_take(1, monotonic_ns())) spdlog::warn("refused {}: {}", caller.who, why);
  return error_reply(known ? 403 : 401, why);
}

}  // namespace te
