// SPDX-License-Identifier: Apache-2.0
#include "te-controller/cli/command_line.h"

#include <CLI/CLI.hpp>
#include <cmath>

#include "te-controller/cli/command_tree.h"
#include "te-controller/cli/file_checks.h"
#include "te-controller/cli/identity_commands.h"
#include "te-controller/cli/render.h"

namespace te {
namespace {

constexpr const char* kDefaultApi = "unix:/run/roce-te/api.sock";
constexpr int kLongestDays = 36500;

constexpr const char* kFooter =
    "Where the controller is: --api, else the environment variable TECTL_API, else unix:/run/roce-te/api.sock.\n"
    "Over TCP, --ca says whom to trust, and --cert with --key, or --token-file, who asks;\n"
    "each has an environment variable too: TECTL_CA, TECTL_CERT, TECTL_KEY, TECTL_TOKEN_FILE.\n"
    "\n"
    "First steps:\n"
    "  tectl status                what it sees and does\n"
    "  tectl flows                 each flow, its path and its rate\n"
    "  tectl plan                  what would be moved now, and why\n"
    "  tectl act on                let it move flows; 'tectl moves' shows what it did\n"
    "  tectl pause                 take all steering back\n"
    "\n"
    "Exit status: 0 done; 1 the answer is no, the call was refused, or the output cannot be written; 2 wrong usage, "
    "or\n"
    "a configuration file with faults; 3 te-controller cannot be reached.";

template <class Message>
Call get(const std::string& path, const std::string& method = "GET") {
  return {.method = method, .path = path, .render = [](const std::string& json, bool colour) {
            Message message;
            if (read_reply(json, message)) return render(message, colour);
            return "cannot read the answer of te-controller; are both of one version?\n" + json;
          }};
}

Call post(const std::string& path) { return get<v1::Status>(path, "POST"); }

}  // namespace

CommandLine::CommandLine(CLI::App& app) : app_(&app) {
  app.set_version_flag("--version", TE_VERSION, "Tell the version");
  app.require_subcommand(1);
  app.fallthrough();
  add_connection_options();
  add_views();
  add_switches();
  add_overrides();
  add_certs();
  add_enrol();
  add_files();
  add_scripts();
  app.footer(kFooter);
}

int CommandLine::run_action() {
  options_.json = output_ == "json";
  if (std::isnan(options_.watch_s)) return complain("--watch is a number of seconds", kUsage);
  return action_();
}

CLI::App* CommandLine::call(CLI::App& parent, const char* name, const char* help, std::function<Call()> make) {
  return add(parent, name, help, [this, make = std::move(make)] { return run_call(options_, make()); });
}

CLI::App* CommandLine::local(CLI::App& parent, const char* name, const char* help, std::function<int()> run) {
  return add(parent, name, help, [this, run = std::move(run)] {
    return options_.watch_s > 0 ? complain("--watch is for what te-controller shows, as 'status'", kUsage) : run();
  });
}

CLI::App* CommandLine::add(CLI::App& parent, const char* name, const char* help, std::function<int()> run) {
  CLI::App* sub = parent.add_subcommand(name, help);
  sub->footer("-o json, --watch and what says where te-controller is go with every command: 'tectl --help'.");
  sub->callback([this, run = std::move(run)] { action_ = run; });
  return sub;
}

CLI::App* CommandLine::group(const char* name, const char* help) {
  CLI::App* sub = app_->add_subcommand(name, help);
  sub->require_subcommand(1);
  return sub;
}

void CommandLine::add_connection_options() {
  options_.api = kDefaultApi;
  app_->add_option("--api", options_.api, "Where te-controller's API is: unix:PATH or HOST:PORT")
      ->envname("TECTL_API")
      ->type_name("PLACE");
  const auto file = [this](const char* name, std::string& target, const char* help, const char* variable) {
    app_->add_option(name, target, help)->envname(variable)->type_name("FILE");
  };
  file("--ca", options_.ca, "Over TCP: who signed te-controller's certificate", "TECTL_CA");
  file("--cert", options_.certificate, "Over TCP: our certificate, with --key", "TECTL_CERT");
  file("--key", options_.key, "Over TCP: the key of our certificate", "TECTL_KEY");
  file("--token-file", options_.token_file, "Over TCP: a file with our token, instead of a certificate",
       "TECTL_TOKEN_FILE");
  app_->add_option("-o,--output", output_, "'json' for programs; default: text for people")
      ->check(CLI::IsMember({"text", "json"}));
  app_->add_option("--watch", options_.watch_s, "Ask again every SECONDS (default 1) until interrupted")
      ->expected(0, 1)
      ->default_str("1")
      ->check(CLI::Range(0.1, 3600.0))
      ->type_name("SECONDS");
}

void CommandLine::add_views() {
  call(*app_, "status", "What the controller sees and does", [] { return get<v1::Status>("/v1/status"); });
  call(*app_, "nodes", "Hosts with their agents, switches with what is known of their ECMP",
       [] { return get<v1::NodeList>("/v1/nodes"); });
  call(*app_, "switches", "How each switch chooses among equal-cost links, what shows it, and its links",
       [] { return get<v1::SwitchList>("/v1/switches"); });
  call(*app_, "links", "Links with their load", [] { return get<v1::LinkList>("/v1/links"); });
  call(*app_, "imbalance", "How evenly flows lie on the links of each tier, and what that costs the slowest",
       [] { return get<v1::Imbalance>("/v1/imbalance"); });
  CLI::App* flows = call(*app_, "flows", "Flows with path and rate", [this] {
    return get<v1::FlowList>(node_.empty() ? "/v1/flows" : "/v1/flows?node=" + query_value(node_));
  });
  flows->add_option("--node", node_, "Only flows that this host sends or receives, or that cross this switch")
      ->type_name("NODE");
  CLI::App* paths =
      call(*app_, "paths", "Equal-cost paths between two hosts, and the ports that lead onto each", [this] {
        return get<v1::PathList>("/v1/paths?source=" + query_value(source_) +
                                 "&destination=" + query_value(destination_));
      });
  paths->add_option("SRC", source_, "Host or address")->required();
  paths->add_option("DST", destination_, "Host or address")->required();
  CLI::App* explain = call(*app_, "explain", "Which path a flow takes, why, and what else was possible",
                           [this] { return get<v1::Explanation>("/v1/explain?flow=" + query_value(flow_)); });
  explain->add_option("FLOW", flow_, "A flow's id, or a unique beginning of it")->required();
  call(*app_, "plan", "What would be moved now, why, and by how much the slowest flow gains",
       [] { return get<v1::PlanView>("/v1/plan"); });
  CLI::App* moves = call(*app_, "moves", "The ledger: what was moved, why, and what came of it",
                         [this] { return get<v1::MoveList>("/v1/moves?limit=" + std::to_string(limit_)); });
  CLI::App* events = local(*app_, "events", "What happened: what agents report and what the controller logs",
                           [this] { return run_events(options_, follow_, limit_); });
  events->add_flag("-f,--follow", follow_, "Go on with what happens, until interrupted");
  for (CLI::App* limited : {moves, events})
    limited->add_option("--limit", limit_, "The newest N (default 50)")->check(CLI::Range(1, 2000))->type_name("N");
}

void CommandLine::add_switches() {
  CLI::App* act = group("act", "Switch acting on or off");
  call(*act, "on", "Carry plans out", [] { return post("/v1/act?on=true"); });
  call(*act, "off", "Move nothing more; flows stay where they are", [] { return post("/v1/act?on=false"); });
  call(*app_, "pause", "Take all steering back now, and move nothing until 'resume'", [] { return post("/v1/pause"); });
  call(*app_, "resume", "Go back to the mode before the pause", [] { return post("/v1/resume"); });
}

Call CommandLine::override_call(const std::string& path, const char* target) const {
  std::string query = "?" + std::string(target) + "=" + query_value(name_);
  const auto ttl_s = lifetime_ == "none" ? Result<std::int64_t>(0) : parse_lifetime_s(lifetime_);
  query += "&ttl_s=" + std::to_string(*ttl_s);
  if (!reason_.empty()) query += "&reason=" + query_value(reason_);
  if (force_) query += "&force=true";
  return get<v1::OverrideList>(path + query, "POST");
}

void CommandLine::add_overrides() {
  call(*app_, "overrides", "What operators drained and pinned, and until when",
       [] { return get<v1::OverrideList>("/v1/overrides"); });
  CLI::App* drain = call(*app_, "drain", "Put all flows off a link or a switch, for a while",
                         [this] { return override_call("/v1/drain", "target"); });
  drain->add_flag("--force", force_, "Even if hosts have no other way left");
  CLI::App* undrain = call(*app_, "undrain", "Let a drained link or switch take flows again", [this] {
    return get<v1::OverrideList>("/v1/undrain?target=" + query_value(name_), "POST");
  });
  CLI::App* pin = call(*app_, "pin", "Leave a flow where it is, for a while, unless its way takes no flows any more",
                       [this] { return override_call("/v1/pin", "flow"); });
  CLI::App* unpin = call(*app_, "unpin", "Let a pinned flow be moved again",
                         [this] { return get<v1::OverrideList>("/v1/unpin?flow=" + query_value(name_), "POST"); });
  for (CLI::App* command : {drain, undrain})
    command->add_option("TARGET", name_, "A switch, or a link by the port at one of its ends, as leaf1:spine2")
        ->required();
  for (CLI::App* command : {pin, unpin})
    command->add_option("FLOW", name_, "A flow's id, or a unique beginning of it")->required();
  const auto is_time = [](const std::string& text) {
    if (text == "none") return std::string();
    const auto parsed = parse_lifetime_s(text);
    return parsed ? std::string() : parsed.error().message;
  };
  for (CLI::App* command : {drain, pin}) {
    command
        ->add_option("--ttl", lifetime_,
                     "How long: 90s, 30m, 1h (default), 7d, 30 days at most; none: until it is taken back")
        ->check(is_time)
        ->type_name("TIME");
    command->add_option("--reason", reason_, "For whoever reads it later")->type_name("TEXT");
  }
}

void CommandLine::add_certs() {
  CLI::App* certs = group("certs", "Certificates and enrolment tokens; needs no controller");
  CLI::App* init = local(*certs, "init", "Make an authority, and the controller's certificate",
                         [this] { return certs_init(authority_, hosts_, authority_days_); });
  init->add_option("--days", authority_days_, "How long the authority is good")
      ->check(CLI::Range(1, kLongestDays))
      ->type_name("DAYS");
  CLI::App* issue = local(*certs, "issue", "Make a key and certificate for a node, or for a user of the API",
                          [this] { return certs_issue(authority_, name_, hosts_, out_, days_); });
  issue->add_option("NAME", name_, "The node as in the topology file, the user as in 'api: roles:', or te-controller")
      ->required();
  issue->add_option("--out", out_, "Where to write NAME.pem and NAME.key (default: here)")->type_name("DIR");
  issue->add_option("--days", days_, "How long it is good")->check(CLI::Range(1, kLongestDays))->type_name("DAYS");
  CLI::App* token = local(*certs, "token", "Make a token with which a node can enrol once",
                          [this] { return certs_token(authority_, name_, lifetime_); });
  token->add_option("NODE", name_, "The node as in the topology file")->required();
  token->add_option("--ttl", lifetime_, "How long it is good: 90s, 30m, 1h (default), 7d")->type_name("TIME");
  CLI::App* revoke = local(*certs, "revoke", "Put certificates on the revocation list",
                           [this] { return certs_revoke(authority_, name_); });
  revoke->add_option("NAME", name_, "All of this node or user, or the one with this serial number")->required();
  CLI::App* list = local(*certs, "list", "What was issued, and what of that is revoked",
                         [this] { return certs_list(authority_, options_.json); });
  for (CLI::App* command : {init, issue})
    command->add_option("--san", hosts_, "An address or name that the controller is reached by; can be given again")
        ->type_name("HOST");
  for (CLI::App* command : {init, issue, token, revoke, list})
    command->add_option("--dir", authority_, "The authority's directory (default /etc/roce-te/ca)")->type_name("DIR");
}

void CommandLine::add_enrol() {
  CLI::App* command = local(*app_, "enrol", "Get a certificate for this node with a one-time token; the key stays here",
                            [this] { return enrol(options_, node_, token_, out_); });
  command->add_option("--node", node_, "This node as in the topology file")->required()->type_name("NODE");
  command->add_option("--token", token_, "From 'tectl certs token'")
      ->required()
      ->envname("TECTL_ENROL_TOKEN")
      ->type_name("TOKEN");
  command->add_option("--out", out_, "Where to write NODE.pem, NODE.key and ca.pem (default: here)")->type_name("DIR");
}

void CommandLine::add_files() {
  CLI::App* topology = group("topology", "Topology files");
  CLI::App* validate = local(*topology, "validate", "Check a file; needs no controller",
                             [this] { return validate_topology(file_, options_.json); });
  validate->add_option("FILE", file_, "Topology file")->required()->type_name("FILE");
  CLI::App* config = group("config", "The controller's configuration file");
  CLI::App* check = local(*config, "check", "Check it and all files it names; needs no controller",
                          [this] { return check_controller_config(file_, options_.json); });
  check->add_option("FILE", file_, "Configuration file")->required()->type_name("FILE");
}

void CommandLine::add_scripts() {
  CLI::App* completion = local(*app_, "completion", "A script that completes tectl's commands in a shell", [this] {
    return show(shell_ == "zsh" ? zsh_completion(describe(*app_)) : bash_completion(describe(*app_)));
  });
  completion->add_option("SHELL", shell_, "bash or zsh")->required()->check(CLI::IsMember({"bash", "zsh"}));
  local(*app_, "man", "This help as a manual page", [this] {
    return show(manual_page(describe(*app_), TE_VERSION));
  })->group("");
}

}  // namespace te
