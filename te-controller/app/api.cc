// SPDX-License-Identifier: Apache-2.0
#include "te-controller/app/api.h"

#include <google/protobuf/struct.pb.h>
#include <google/protobuf/util/json_util.h>

#include <charconv>
#include <utility>

namespace te {
namespace {

constexpr std::size_t kMovesByDefault = 50;

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

HttpReply failed(int status, const std::string& text) {
  google::protobuf::Struct error;  // its JSON is {"error": TEXT}, escaped
  (*error.mutable_fields())["error"].set_string_value(text);
  return HttpReply{.status = status, .body = to_json(error)};
}

template <class T>
HttpReply ok_or(int status, const Result<T>& result) {
  return result ? ok(*result) : failed(status, result.error().message);
}

std::string value_of(const HttpRequest& request, const std::string& name) {
  const auto found = request.query.find(name);
  return found == request.query.end() ? std::string() : found->second;
}

}  // namespace

Api::Api(Engine& engine, Surroundings surroundings)
    : engine_(&engine), views_(engine), surroundings_(std::move(surroundings)) {}

HttpReply Api::answer(const HttpRequest& request) {
  if (request.method == "GET") return get(request);
  if (request.method == "POST") return post(request);
  return failed(400, "only GET and POST are known here, not " + request.method);
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
  if (request.path == "/v1/links") return ok(views_.links(now_ns));
  if (request.path == "/v1/flows") return ok_or(404, views_.flows(value_of(request, "node"), now_ns));
  if (request.path == "/v1/plan") return ok(views_.plan());
  if (request.path == "/v1/paths") {
    const std::string source = value_of(request, "source");
    const std::string destination = value_of(request, "destination");
    if (source.empty() || destination.empty())
      return failed(400, "'source' and 'destination' are needed, as in /v1/paths?source=h1&destination=h2");
    return ok_or(404, views_.paths(source, destination, now_ns));
  }
  if (request.path == "/v1/explain") {
    const std::string flow = value_of(request, "flow");
    if (flow.empty()) return failed(400, "'flow' is needed, as in /v1/explain?flow=1a2b3c4d");
    return ok_or(404, views_.explain(flow, now_ns));
  }
  if (request.path == "/v1/moves") {
    const std::string text = value_of(request, "limit");
    std::size_t limit = kMovesByDefault;
    const auto [end, problem] = std::from_chars(text.data(), text.data() + text.size(), limit);
    if (!text.empty() && (problem != std::errc() || end != text.data() + text.size())) {
      return failed(400, "'limit' is a whole number, not '" + text + "'");
    }
    return ok(views_.moves(limit));
  }
  return failed(404, "nothing at " + request.path);
}

HttpReply Api::post(const HttpRequest& request) {
  const std::int64_t now_ns = surroundings_.now_ns();
  Result<void> done;
  if (request.path == "/v1/act") {
    const std::string on = value_of(request, "on");
    if (on != "true" && on != "false") return failed(400, "'on' is true or false, as in /v1/act?on=true");
    done = engine_->set_acting(on == "true", now_ns);
  } else if (request.path == "/v1/pause") {
    engine_->pause(now_ns);
  } else if (request.path == "/v1/resume") {
    done = engine_->resume(now_ns);
  } else {
    return failed(404, "nothing to POST at " + request.path);
  }
  if (!done) return failed(409, done.error().message);
  surroundings_.wake();
  return ok(status());
}

}  // namespace te
