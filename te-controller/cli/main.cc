// SPDX-License-Identifier: Apache-2.0
#include <google/protobuf/struct.pb.h>
#include <google/protobuf/util/json_util.h>
#include <unistd.h>

#include <CLI/CLI.hpp>
#include <chrono>
#include <csignal>
#include <cstdio>
#include <cstdlib>
#include <functional>
#include <string>
#include <thread>

#include "common/os/file.h"
#include "te-controller/cli/api_client.h"
#include "te-controller/cli/output.h"
#include "te-controller/cli/render.h"
#include "te/v1/api.pb.h"
#include "topology/reader.h"

namespace te {
namespace {

constexpr int kOk = 0;
constexpr int kRefused = 1;
constexpr int kUsage = 2;
constexpr int kUnreachable = 3;
constexpr int kReaderGone = -1;  // nobody reads on: stop, as if done
constexpr std::chrono::milliseconds kCallLimit{5000};
constexpr const char* kDefaultApi = "unix:/run/roce-te/api.sock";

constexpr const char* kFooter =
    "Where the controller is: --api, else the environment variable TE_API, else unix:/run/roce-te/api.sock.\n"
    "\n"
    "First steps:\n"
    "  tectl status                what it sees and does\n"
    "  tectl flows                 each flow, its path and its rate\n"
    "  tectl plan                  what would be moved now, and why\n"
    "  tectl act on                let it move flows; 'tectl moves' shows what it did\n"
    "  tectl pause                 take all steering back\n"
    "\n"
    "Exit status: 0 done; 1 the answer is no, the call was refused, or the output cannot be written; 2 wrong usage; 3 "
    "te-controller cannot be "
    "reached.";

struct Options {
  std::string api;
  bool json = false;
  double watch_s = 0;  ///< 0: once
};

/// One call: how to ask, and how to show the answer to people.
struct Call {
  std::string method = "GET";
  std::string target;
  std::function<std::string(const std::string& json, bool colour)> render;
};

template <class Message>
Call call(const std::string& method, const std::string& target) {
  return {.method = method, .target = target, .render = [](const std::string& json, bool colour) {
            Message message;
            google::protobuf::util::JsonParseOptions options;
            options.ignore_unknown_fields = true;
            const auto read = google::protobuf::util::JsonStringToMessage(json, &message, options);
            if (!read.ok()) return "cannot read the answer of te-controller; are both of one version?\n" + json;
            return render(message, colour);
          }};
}

bool colour_wanted() {
  const char* no_colour = std::getenv("NO_COLOR");
  return ::isatty(STDOUT_FILENO) == 1 && (no_colour == nullptr || *no_colour == '\0');
}

/// The text of {"error": TEXT}.
std::string error_text(const std::string& body) {
  google::protobuf::Struct reply;
  if (!google::protobuf::util::JsonStringToMessage(body, &reply).ok()) return body;
  const auto found = reply.fields().find("error");
  return found == reply.fields().end() ? body : found->second.string_value();
}

/// Writes to standard output; an exit status.
int show(const std::string& text) {
  const auto written = write_output(stdout, text);
  if (written) return *written == Output::kWritten ? kOk : kReaderGone;
  std::fprintf(stderr, "tectl: %s\n", written.error().message.c_str());
  return kRefused;
}

int run_once(const Options& options, const Call& wanted) {
  std::string path = options.api;
  if (path.starts_with("unix:")) path.erase(0, 5);
  const auto reply = call_api(path, wanted.method, wanted.target, kCallLimit);
  if (!reply) {
    std::fprintf(stderr, "tectl: %s\n", reply.error().message.c_str());
    return kUnreachable;
  }
  if (reply->status != 200) {
    std::fprintf(stderr, "tectl: %s\n", error_text(reply->body).c_str());
    return kRefused;
  }
  const bool clear = options.watch_s > 0 && ::isatty(STDOUT_FILENO) == 1 && !options.json;
  const std::string text = options.json ? reply->body : wanted.render(reply->body, colour_wanted());
  return show((clear ? "\033[H\033[2J" : "") + text);
}

int run(const Options& options, const Call& wanted) {
  int status = run_once(options, wanted);
  while (options.watch_s > 0 && (status == kOk || status == kUnreachable)) {  // it comes back: a restart is no end
    std::this_thread::sleep_for(std::chrono::duration<double>(options.watch_s));
    status = run_once(options, wanted);
  }
  return status;
}

int validate_topology(const std::string& path, bool json) {
  const auto text = read_file(path);
  const auto fabric = text ? read_fabric_yaml(*text, path) : Result<Fabric>(text.error());
  if (!fabric) {
    if (json) (void)show("{\"valid\": false}\n");
    std::fprintf(stderr, "tectl: %s\n", fabric.error().message.c_str());
    return kRefused;
  }
  std::size_t hosts = 0;
  for (const Node& node : fabric->nodes()) hosts += node.is_host() ? 1U : 0U;
  const std::string host_count = std::to_string(hosts);
  const std::string switch_count = std::to_string(fabric->nodes().size() - hosts);
  const std::string link_count = std::to_string(fabric->links().size());
  if (json) {
    return show("{\"valid\": true, \"hosts\": " + host_count + ", \"switches\": " + switch_count +
                ", \"links\": " + link_count + "}\n");
  }
  return show(path + ": valid; " + host_count + " hosts, " + switch_count + " switches, " + link_count +
              " links (one direction each)\n");
}

int finish(int status) { return status == kReaderGone ? kOk : status; }

/// Declares the subcommands; each sets `action`.
class CommandLine {
 public:
  explicit CommandLine(CLI::App& app) : app_(&app) {
    app.footer(kFooter);
    app.set_version_flag("--version", TE_VERSION);
    app.require_subcommand(1);
    app.fallthrough();
    app.add_option("--api", options_.api, "Where te-controller's API is: unix:PATH")
        ->envname("TE_API")
        ->default_str(kDefaultApi);
    app.add_option("-o,--output", output_, "'json' for programs; default: text for people")
        ->check(CLI::IsMember({"text", "json"}));
    app.add_option("--watch", options_.watch_s, "Ask again every SECONDS (default 1) until interrupted")
        ->expected(0, 1)
        ->default_str("1")
        ->check(CLI::Range(0.1, 3600.0))
        ->type_name("SECONDS");
    options_.api = kDefaultApi;
    add_views();
    add_switches();
  }

  int run_action() {
    options_.json = output_ == "json";
    return action_();
  }

 private:
  CLI::App* command(CLI::App& parent, const char* name, const char* help, std::function<Call()> make) {
    CLI::App* sub = parent.add_subcommand(name, help);
    sub->callback([this, make = std::move(make)] { action_ = [this, make] { return run(options_, make()); }; });
    return sub;
  }

  void add_views() {
    command(*app_, "status", "What the controller sees and does", [] { return call<v1::Status>("GET", "/v1/status"); });
    command(*app_, "nodes", "Hosts with their agents, switches with what is known of their ECMP",
            [] { return call<v1::NodeList>("GET", "/v1/nodes"); });
    command(*app_, "links", "Links with their load", [] { return call<v1::LinkList>("GET", "/v1/links"); });
    CLI::App* flows = command(*app_, "flows", "Flows with path and rate", [this] {
      return call<v1::FlowList>("GET", node_.empty() ? "/v1/flows" : "/v1/flows?node=" + query_value(node_));
    });
    flows->add_option("--node", node_, "Only flows that this host sends or receives");
    CLI::App* paths =
        command(*app_, "paths", "Equal-cost paths between two hosts, and the ports that lead onto each", [this] {
          return call<v1::PathList>(
              "GET", "/v1/paths?source=" + query_value(source_) + "&destination=" + query_value(destination_));
        });
    paths->add_option("SRC", source_, "Host or address")->required();
    paths->add_option("DST", destination_, "Host or address")->required();
    CLI::App* explain = command(*app_, "explain", "Which path a flow takes, why, and what else was possible", [this] {
      return call<v1::Explanation>("GET", "/v1/explain?flow=" + query_value(flow_));
    });
    explain->add_option("FLOW", flow_, "A flow's id, or a unique beginning of it")->required();
    command(*app_, "plan", "What would be moved now, and why", [] { return call<v1::PlanView>("GET", "/v1/plan"); });
    CLI::App* moves = command(*app_, "moves", "The ledger: what was moved, why, and what came of it", [this] {
      return call<v1::MoveList>("GET", "/v1/moves?limit=" + std::to_string(limit_));
    });
    moves->add_option("--limit", limit_, "The newest N")->check(CLI::Range(1, 2000))->type_name("N");
  }

  void add_switches() {
    CLI::App* act = app_->add_subcommand("act", "Switch acting on or off");
    act->require_subcommand(1);
    command(*act, "on", "Carry plans out", [] { return call<v1::Status>("POST", "/v1/act?on=true"); });
    command(*act, "off", "Move nothing more; flows stay where they are",
            [] { return call<v1::Status>("POST", "/v1/act?on=false"); });
    command(*app_, "pause", "Take all steering back now, and move nothing until 'resume'",
            [] { return call<v1::Status>("POST", "/v1/pause"); });
    command(*app_, "resume", "Go back to the mode before the pause",
            [] { return call<v1::Status>("POST", "/v1/resume"); });
    CLI::App* topology = app_->add_subcommand("topology", "Topology files");
    topology->require_subcommand(1);
    CLI::App* validate = topology->add_subcommand("validate", "Check a file; needs no controller");
    validate->add_option("FILE", file_, "Topology file")->required();
    validate->callback([this] { action_ = [this] { return validate_topology(file_, options_.json); }; });
  }

  CLI::App* app_;
  Options options_;
  std::string output_ = "text";
  std::string node_;
  std::string source_;
  std::string destination_;
  std::string flow_;
  std::string file_;
  int limit_ = 50;
  std::function<int()> action_;
};

}  // namespace
}  // namespace te

int main(int argc, char** argv) {
  CLI::App app("Asks and commands te-controller.", "tectl");
  std::signal(SIGPIPE, SIG_IGN);  // a reader that is gone is seen as an error of the write
  te::CommandLine line(app);
  try {
    app.parse(argc, argv);
  } catch (const CLI::ParseError& problem) {
    return app.exit(problem) == 0 ? te::finish(te::show("")) : te::kUsage;
  }
  return te::finish(line.run_action());
}
