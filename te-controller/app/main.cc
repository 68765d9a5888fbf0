// SPDX-License-Identifier: Apache-2.0
#include <spdlog/spdlog.h>

#include <CLI/CLI.hpp>
#include <boost/asio/io_context.hpp>
#include <boost/asio/signal_set.hpp>
#include <csignal>
#include <cstdio>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "common/net/tls_source.h"
#include "common/os/clock.h"
#include "common/os/log.h"
#include "te-controller/app/agent_server.h"
#include "te-controller/app/api.h"
#include "te-controller/app/config.h"
#include "te-controller/app/controller.h"
#include "te-controller/app/enrolment.h"
#include "te-controller/app/event_log.h"
#include "te-controller/app/gate.h"
#include "te-controller/app/http_server.h"
#include "te-controller/app/metrics.h"
#include "te-controller/app/preflight.h"
#include "te-controller/app/reloader.h"
#include "te-controller/app/store.h"
#include "te-controller/app/store_writer.h"
#include "te-controller/cli/command_tree.h"
#include "te-controller/engine/engine.h"

namespace te {
namespace {

constexpr int kSilentIntervals = 5;  // then an agent is taken for dead
constexpr std::int64_t kMovesLoaded = 2000;

constexpr const char* kHelp =
    "Traffic engineering for RoCE: learns which path each flow takes and moves flows off busy links.\n"
    "It starts in the mode of its configuration file (observe: nothing is changed) and afterwards in the mode it was\n"
    "left in; 'tectl act on' makes it act, 'tectl pause' takes all steering back.";
constexpr const char* kFooter =
    "Configuration file (defaults after #):\n"
    "  topology: /etc/roce-te/topology.yaml\n"
    "  state: /var/lib/roce-te/state.db\n"
    "  agents: {listen: \"0.0.0.0:7411\", certificate: FILE, key: FILE, ca: FILE, crl: FILE}      # crl: none\n"
    "  api:\n"
    "    unix: /run/roce-te/api.sock                   # whoever may open it may do all\n"
    "    listen: \"0.0.0.0:7414\"                      # not over TCP\n"
    "    tls: {certificate: FILE, key: FILE, client_ca: FILE, crl: FILE}\n"
    "    roles: {NAME-OF-A-CERTIFICATE: view}          # view, operate or isolate\n"
    "    tokens_file: /etc/roce-te/api-tokens.yaml     # none\n"
    "  enrolment: {authority: DIRECTORY, days: 365}    # nobody can enrol\n"
    "  metrics: {listen: \"127.0.0.1:7412\"}            # as here\n"
    "  mode: observe                                   # observe; or act\n"
    "  planning: {interval_ms: 250, hysteresis: 0.05, cooldown_ms: 3000, moves_per_cycle: 16}\n"
    "  probing: {answers_per_switch_per_s: 100, attempts: 3, timeout_ms: 200}\n"
    "  report_interval_ms: 500\n"
    "  log: info                                       # error, warn, info, debug\n"
    "\nExit status: 0 stopped by a signal or --check found no fault, 1 it could not start, 2 wrong usage.\n"
    "SIGTERM and SIGINT stop it; agents keep steering as it is. SIGHUP has it read certificates, revocation lists and\n"
    "tokens again; it also looks itself, once a second.";

std::int64_t wall_s() { return wall_us() / 1'000'000; }

std::vector<std::string> warnings_of(const AgentServer& agents, const StoreWriter& writer, const Reloader& reloader) {
  std::vector<std::string> warnings = agents.warnings();
  for (std::string& warning : reloader.warnings()) warnings.push_back(std::move(warning));
  if (!writer.problem().empty()) warnings.push_back(writer.problem() + "; decisions are not stored");
  return warnings;
}

int check(const std::string& config_path) {
  const ConfigReport report = check_config(config_path);
  for (const std::string& fault : report.faults) std::fprintf(stderr, "te-controller: %s\n", fault.c_str());
  if (!report.faults.empty()) return 1;
  std::printf("%s: no fault found; %zu nodes, %zu links\n", config_path.c_str(), report.nodes, report.links);
  return 0;
}

/// Where people and programs ask: the API on a Unix socket and, when configured, over TCP; metrics.
struct Listeners {
  std::shared_ptr<TlsSource> api_tls;  ///< null: not over TCP
  std::vector<std::unique_ptr<HttpServer>> servers;
  std::string api_port;  ///< for the log
};

Result<Listeners> listen_for_people(boost::asio::io_context& io, const ControllerConfig& config, Gate& gate,
                                    Metrics& metrics) {
  Listeners all;
  const HttpHandler api = [&gate](const HttpRequest& request) { return gate.answer(request); };
  auto local = HttpServer::on_unix_socket(io, config.api_socket_path, api);
  if (!local) return std::move(local).error();
  all.servers.push_back(*std::move(local));
  auto scraped = HttpServer::on_tcp(io, config.metrics_listen, [&metrics](const HttpRequest& request) {
    return metrics.answer(request, monotonic_ns());
  });
  if (!scraped) return std::move(scraped).error();
  all.servers.push_back(*std::move(scraped));
  if (!config.api_listener) return all;
  auto tls = TlsSource::open(config.api_listener->tls, PeerCertificate::kOptional);
  if (!tls) return with_context(std::move(tls).error(), "api.tls");
  all.api_tls = *std::move(tls);
  auto remote = HttpServer::on_tcp(io, config.api_listener->listen, api, all.api_tls);
  if (!remote) return std::move(remote).error();
  all.api_port = " and port " + std::to_string((*remote)->port());
  all.servers.push_back(*std::move(remote));
  return all;
}

Result<Access> load_access(const ControllerConfig& config) {
  if (!config.api_listener) return Access();
  auto tokens = load_api_tokens(*config.api_listener);
  if (!tokens) return std::move(tokens).error();
  return Access(config.api_listener->roles, *std::move(tokens));
}

/// What is read again while the program runs.
void watch_files(Reloader& reloader, const ControllerConfig& config, TlsSource& agents_tls, AgentServer& agents,
                 const std::shared_ptr<TlsSource>& api_tls, Gate& gate) {
  reloader.add(
      "certificates for agents", [&agents_tls](bool always) { return agents_tls.refresh(always); },
      [&agents] { agents.recheck_sessions(); });
  if (!api_tls) return;
  reloader.add("certificates of the API", [api_tls](bool always) { return api_tls->refresh(always); });
  if (config.api_listener->tokens_path.empty()) return;
  auto watch = std::make_shared<FileWatch>(std::vector{config.api_listener->tokens_path});
  reloader.add("tokens of the API", [watch, &gate, &config](bool always) -> Result<bool> {
    if (!watch->changed() && !always) return false;
    auto tokens = load_api_tokens(*config.api_listener);
    if (!tokens) return std::move(tokens).error();
    gate.access().set_tokens(*std::move(tokens));
    return true;
  });
}

Result<ControllerConfig> load_and_start_log(const std::string& path) {
  auto config = load_controller_config(path);
  if (!config) return config;
  if (const auto started = start_log("te-controller", config->log_level); !started) return started.error();
  if (const auto good = check_surroundings(*config); !good) return good.error();
  return config;
}

std::chrono::milliseconds silence_limit(const ControllerConfig& config) {
  return std::chrono::milliseconds(kSilentIntervals * config.engine.report_interval_ms);
}

/// The wiring: agents <-> AgentServer <-> Controller <-> Engine; Engine -> StoreWriter -> Store; tectl -> HttpServer ->
/// Gate -> Api.
Result<void> serve(const std::string& config_path) {
  const auto config = load_and_start_log(config_path);
  if (!config) return config.error();
  EventLog events(wall_us());
  spdlog::default_logger()->sinks().push_back(events.sink());
  auto fabric = load_fabric(config->topology_path);
  if (!fabric) return fabric.error();
  const auto tls = TlsSource::open(config->agents_tls, PeerCertificate::kRequired);
  if (!tls) return tls.error();
  const auto access = load_access(*config);
  if (!access) return access.error();
  auto store = Store::open(config->state_path);
  if (!store) return store.error();
  const auto state = (*store)->load(kMovesLoaded);
  if (!state) return state.error();

  boost::asio::io_context io(1);
  Engine engine(*std::move(fabric), config->engine, monotonic_ns(), wall_us());
  engine.restore(*state, monotonic_ns());

  auto agents = AgentServer::listen(io, config->agents_listen, *tls, silence_limit(*config));
  if (!agents) return agents.error();
  StoreWriter writer(io, *std::move(store));
  Controller controller(io, engine, **agents, writer, events);
  Reloader reloader(io);

  Api api(engine, {.version = TE_VERSION,
                   .topology = config->topology_path,
                   .warnings = [&] { return warnings_of(**agents, writer, reloader); },
                   .wake = [&] { controller.wake(); },
                   .now_ns = &monotonic_ns,
                   .events = &events});
  Enrolment enrolment(config->enrolment_authority, config->enrolment_days, {&monotonic_ns, &wall_s});
  Gate gate(api, enrolment, *access);
  Metrics metrics(engine, **agents, writer);
  const auto listeners = listen_for_people(io, *config, gate, metrics);
  if (!listeners) return listeners.error();
  metrics.watch(gate, enrolment, listeners->servers);
  watch_files(reloader, *config, **tls, **agents, listeners->api_tls, gate);

  boost::asio::signal_set signals(io, SIGTERM, SIGINT);
  signals.async_wait([&](const boost::system::error_code& failed, int number) {
    if (failed) return;
    spdlog::info("stopping on signal {}; agents keep steering as it is", number);
    for (const auto& server : listeners->servers) server->stop();
    reloader.stop();
    (*agents)->stop();
    controller.stop();
    writer.finish();
    io.stop();
  });
  (*agents)->start(controller);
  controller.start();
  for (const auto& server : listeners->servers) server->start();
  reloader.start();
  spdlog::info("ready: mode {}, agents on port {}, API on {}{}, metrics on {} port {}", to_string(engine.mode()),
               (*agents)->port(), config->api_socket_path, listeners->api_port, config->metrics_listen.host,
               config->metrics_listen.port);
  io.run();
  spdlog::default_logger()->sinks().pop_back();  // the events end before the log does
  return {};
}

}  // namespace
}  // namespace te

int main(int argc, char** argv) {
  CLI::App app(te::kHelp, "te-controller");
  app.footer(te::kFooter);
  app.set_version_flag("--version", TE_VERSION);
  std::string config_path;
  bool check_only = false;
  app.add_option("--config", config_path, "Configuration file")->required();
  app.add_flag("--check", check_only,
               "Only look at the files and directories it names, say what is wrong with them, and exit");
  const auto print_manual = [&app] {
    std::fputs(te::manual_page(te::describe(app), TE_VERSION).c_str(), stdout);
    throw CLI::Success();
  };
  app.add_flag_callback("--man", print_manual, "This help as a manual page")->group("");
  try {
    app.parse(argc, argv);
  } catch (const CLI::ParseError& problem) {
    return app.exit(problem) == 0 ? 0 : 2;
  }
  std::signal(SIGPIPE, SIG_IGN);
  if (check_only) return te::check(config_path);
  const auto done = te::serve(config_path);
  if (done) return 0;
  std::fprintf(stderr, "te-controller: %s\n", done.error().message.c_str());
  return 1;
}
