// SPDX-License-Identifier: Apache-2.0
#include "te-controller/cli/call.h"

#include <google/protobuf/util/json_util.h>
#include <unistd.h>

#include <chrono>
#include <cstdio>
#include <cstdlib>
#include <thread>

#include "common/os/file.h"
#include "te-controller/cli/output.h"
#include "te-controller/cli/render.h"

namespace te {
namespace {

constexpr std::chrono::milliseconds kCallLimit{5000};
constexpr std::chrono::milliseconds kFollowInterval{500};
constexpr int kMostEvents = 2000;

struct Answer {
  int status = kOk;
  std::string body;
};

/// One call; complaints are written.
Answer ask(const CallOptions& options, const std::string& method, const std::string& path) {
  const auto target = target_of(options);
  if (!target) return {complain(target.error().message, kUsage), ""};
  auto reply = call_api(*target, method, path, kCallLimit);
  if (!reply) return {complain(reply.error().message, kUnreachable), ""};
  if (reply->status != 200) return {complain(error_text(reply->body), kRefused), ""};
  return {kOk, std::move(reply->body)};
}

int run_once(const CallOptions& options, const Call& call) {
  const Answer answer = ask(options, call.method, call.path);
  if (answer.status != kOk) return answer.status;
  const bool clear = options.watch_s > 0 && ::isatty(STDOUT_FILENO) == 1 && !options.json;
  const std::string text = options.json ? answer.body : call.render(answer.body, colour_wanted());
  return show((clear ? "\033[H\033[2J" : "") + text);
}

/// For programs: one event a line.
std::string lines_of(const v1::EventList& list) {
  google::protobuf::util::JsonPrintOptions print;
  print.preserve_proto_field_names = true;
  std::string lines;
  for (const v1::EventView& event : list.events()) {
    std::string line;
    (void)google::protobuf::util::MessageToJsonString(event, &line, print);
    lines += line + "\n";
  }
  return lines;
}

}  // namespace

Result<ApiTarget> target_of(const CallOptions& options) {
  auto target = parse_api_target(options.api);
  if (!target) return target;
  target->ca = options.ca;
  target->certificate = options.certificate;
  target->key = options.key;
  if (options.certificate.empty() != options.key.empty())
    return Error{"--cert and --key belong together: give both or none"};
  if (options.token_file.empty()) return target;
  const auto token = read_file(options.token_file);
  if (!token) return token.error();
  target->token = token->substr(0, token->find_first_of(" \r\n\t"));
  if (target->token.empty()) return Error{options.token_file + " holds no token; its first word is to be one"};
  return target;
}

bool read_reply(const std::string& json, google::protobuf::Message& message) {
  google::protobuf::util::JsonParseOptions options;
  options.ignore_unknown_fields = true;
  return google::protobuf::util::JsonStringToMessage(json, &message, options).ok();
}

int run_call(const CallOptions& options, const Call& call) {
  if (options.watch_s > 0 && call.method != "GET")
    return complain("--watch asks again and again; this command changes something, and is done once", kUsage);
  int status = run_once(options, call);
  while (options.watch_s > 0 && (status == kOk || status == kUnreachable)) {  // it comes back: a restart is no end
    std::this_thread::sleep_for(std::chrono::duration<double>(options.watch_s));
    status = run_once(options, call);
  }
  return status;
}

int run_events(const CallOptions& options, bool follow, int limit) {
  int after = 0;
  double started_s = 0;
  while (true) {
    const Answer answer =
        ask(options, "GET", "/v1/events?limit=" + std::to_string(limit) + "&after=" + std::to_string(after));
    if (answer.status != kOk && !(follow && started_s > 0 && answer.status == kUnreachable)) return answer.status;
    v1::EventList list;
    if (answer.status == kOk && !read_reply(answer.body, list))
      return complain("cannot read the answer of te-controller; are both of one version?", kRefused);
    if (answer.status == kOk) {
      const bool restarted = started_s > 0 && list.started_s() != started_s;
      started_s = list.started_s();
      after = restarted ? 0 : list.last();  // its numbers began anew: all of them are news
      if (restarted) continue;
      const int shown = show(!options.json ? render(list, colour_wanted()) : follow ? lines_of(list) : answer.body);
      if (shown != kOk || !follow) return shown;
      limit = kMostEvents;
    }
    std::this_thread::sleep_for(kFollowInterval);
  }
}

int show(const std::string& text) {
  const auto written = write_output(stdout, text);
  if (written) return *written == Output::kWritten ? kOk : kNobodyReads;
  return complain(written.error().message, kRefused);
}

int complain(const std::string& message, int status) {
  std::fprintf(stderr, "tectl: %s\n", message.c_str());
  return status;
}

bool colour_wanted() {
  const char* no_colour = std::getenv("NO_COLOR");
  return ::isatty(STDOUT_FILENO) == 1 && (no_colour == nullptr || *no_colour == '\0');
}

}  // namespace te
