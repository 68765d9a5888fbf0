// SPDX-License-Identifier: Apache-2.0
#include "te-controller/app/api.h"

#include <google/protobuf/util/json_util.h>

#include <algorithm>
#include <charconv>
#include <utility>

namespace te {
namespace {

constexpr int kMovesByDefault = 50;
constexpr int kEventsByDefault = 100;
constexpr int kOverrideSeconds = 3600;  // what is forgotten heals itself
constexpr std::size_t kLongestReason = 200;

std::string to_json(const google::protobuf::Message& message) {
  google::protobuf::util::JsonPrintOptions options;
  options.always_print_primitive_fields = true;
  options.preserve_proto_field_names = true;
  std::string json;
  (void)google::protobuf::util::MessageToJsonString(message, &json, options);
  json.push_back('\n');
  return json;
}

HttpReply ok(const google::protobuf::Message& message) { return HttpReply{.status = 200, .body = to_json(message)}; }

template <class T>
HttpReply ok_or(int status, const Result<T>& result) {
  return result ? ok(*result) : error_reply(status, result.error().message);
}

std::string value_of(const HttpRequest& request, const std::string& name) {
  const auto found = request.query.find(name);
  return found == request.query.end() ? std::string() : found->second;
}

/// A whole number of the query, 0 or more.
Result<int> number_of(const HttpRequest& request, const std::string& name, int fallback) {
  const std::string text = value_of(request, name);
  if (text.empty()) return fallback;
  int number = 0;
  const auto [end, problem] = std::from_chars(text.data(), text.data() + text.size(), number);
  if (problem == std::errc() && end == text.data() + text.size() && number >= 0) return number;
  return Error{"'" + name + "' is a whole number, not '" + text + "'"};
}

}  // namespace

Api::Api(Engine& engine, Surroundings surroundings)
    : engine_(&engine), views_(engine), surroundings_(std::move(surroundings)) {}

HttpReply Api::answer(const HttpRequest& request) {
  if (request.method == "GET") return get(request);
  if (request.method == "POST") return post(request);
  return error_reply(405, "only GET and POST are known here, not " + request.method);
}

v1::Status Api::status() {
  v1::Status status = views_.status(surroundings_.now_ns());
  status.set_version(surroundings_.version);
  status.set_topology(surroundings_.topology);
  for (const std::string& warning : surroundings_.warnings()) status.add_warnings(warning);
  return status;
}

HttpReply Api::get(const HttpRequest& request) {
  const std::int64_t now_ns = surroundings_.now_ns();
  if (request.path == "/v1/status") return ok(status());
  if (request.path == "/v1/nodes") return ok(views_.nodes(now_ns));
  if (request.path == "/v1/switches") return ok(views_.switches(now_ns));
  if (request.path == "/v1/links") return ok(views_.links(now_ns));
  if (request.path == "/v1/imbalance") return ok(views_.imbalance(now_ns));
  if (request.path == "/v1/flows") return ok_or(404, views_.flows(value_of(request, "node"), now_ns));
  if (request.path == "/v1/plan") return ok(views_.plan());
  if (request.path == "/v1/overrides") return ok(views_.overrides());
  if (request.path == "/v1/paths") {
    const std::string source = value_of(request, "source");
    const std::string destination = value_of(request, "destination");
    if (source.empty() || destination.empty())
      return error_reply(400, "'source' and 'destination' are needed, as in /v1/paths?source=h1&destination=h2");
    return ok_or(404, views_.paths(source, destination, now_ns));
  }
  if (request.path == "/v1/explain") {
    const std::string flow = value_of(request, "flow");
    if (flow.empty()) return error_reply(400, "'flow' is needed, as in /v1/explain?flow=1a2b3c4d");
    return ok_or(404, views_.explain(flow, now_ns));
  }
  if (request.path == "/v1/moves") {
    const auto limit = number_of(request, "limit", kMovesByDefault);
    return limit ? ok(views_.moves(static_cast<std::size_t>(*limit))) : error_reply(400, limit.error().message);
  }
  if (request.path == "/v1/events" && surroundings_.events != nullptr) {
    const auto limit = number_of(request, "limit", kEventsByDefault);
    const auto after = number_of(request, "after", 0);
    if (!limit || !after) return error_reply(400, (limit ? after : limit).error().message);
    return ok(surroundings_.events->after(*after, static_cast<std::size_t>(*limit)));
  }
  return error_reply(404, "nothing to GET at " + request.path);
}

HttpReply Api::post_override(const HttpRequest& request) {
  const std::int64_t now_ns = surroundings_.now_ns();
  const bool drains = request.path.ends_with("drain");
  const std::string target = value_of(request, drains ? "target" : "flow");
  if (target.empty())
    return error_reply(400, drains ? "'target' is needed, as in " + request.path + "?target=leaf1:spine2"
                                   : "'flow' is needed, as in " + request.path + "?flow=1a2b3c4d");
  const auto ttl_s = number_of(request, "ttl_s", kOverrideSeconds);
  if (!ttl_s) return error_reply(400, ttl_s.error().message);
  const std::string reason = value_of(request, "reason");
  const bool plain = std::ranges::all_of(reason, [](char c) { return c >= ' ' && c <= '~'; });
  if (!plain || reason.size() > kLongestReason)  // it goes into the log, the store and every later answer
    return error_reply(400, "'reason' is at most 200 printable ASCII characters");
  const std::string force = value_of(request, "force");
  if (!force.empty() && force != "true" && force != "false")
    return error_reply(400, "'force' is true or false, not '" + force + "'");
  v1::OverrideView order;
  order.set_target(target);
  order.set_who(request.who);
  order.set_reason(reason);
  order.set_until_s(*ttl_s);
  Result<std::string> replaced{std::string()};
  if (request.path == "/v1/drain") {
    replaced = engine_->drain(std::move(order), force == "true", now_ns);
  } else if (request.path == "/v1/pin") {
    replaced = engine_->pin(std::move(order), now_ns);
  } else if (const auto done =
                 engine_->take_back(drains ? Overrides::kDrain : Overrides::kPin, target, request.who, now_ns);
             !done) {
    replaced = done.error();
  }
  if (!replaced) return error_reply(409, replaced.error().message);
  surroundings_.wake();
  v1::OverrideList list = views_.overrides();
  if (!replaced->empty()) list.add_notes("it takes the place of an older one: " + *replaced);
  if (request.path == "/v1/drain" && engine_->mode() != Mode::kAct)
    list.add_notes("mode is " + std::string(to_string(engine_->mode())) + ": flows stay on it until '" +
                   (engine_->mode() == Mode::kPaused ? "tectl resume'" : "tectl act on'"));
  return ok(list);
}

HttpReply Api::post(const HttpRequest& request) {
  for (const char* path : {"/v1/drain", "/v1/undrain", "/v1/pin", "/v1/unpin"})
    if (request.path == path) return post_override(request);
  const std::int64_t now_ns = surroundings_.now_ns();
  Result<void> done;
  if (request.path == "/v1/act") {
    const std::string on = value_of(request, "on");
    if (on != "true" && on != "false") return error_reply(400, "'on' is true or false, as in /v1/act?on=true");
    done = engine_->set_acting(on == "true", now_ns);
  } else if (request.path == "/v1/pause") {
    engine_->pause(now_ns);
  } else if (request.path == "/v1/resume") {
    done = engine_->resume(now_ns);
  } else {
    return error_reply(404, "nothing to POST at " + request.path);
  }
  if (!done) return error_reply(409, done.error().message);
  surroundings_.wake();
  return ok(status());
}

}  // namespace te
