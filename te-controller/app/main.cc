// SPDX-License-Identifier: Apache-2.0
#include <spdlog/spdlog.h>

#include <CLI/CLI.hpp>
#include <boost/asio/io_context.hpp>
#include <boost/asio/signal_set.hpp>
#include <csignal>
#include <cstdio>
#include <string>
#include <vector>

#include "common/net/tls.h"
#include "common/os/clock.h"
#include "common/os/file.h"
#include "common/os/log.h"
#include "te-controller/app/agent_server.h"
#include "te-controller/app/api.h"
#include "te-controller/app/config.h"
#include "te-controller/app/controller.h"
#include "te-controller/app/http_server.h"
#include "te-controller/app/metrics.h"
#include "te-controller/app/preflight.h"
#include "te-controller/app/store.h"
#include "te-controller/app/store_writer.h"
#include "te-controller/engine/engine.h"
#include "topology/reader.h"

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
    "  agents: {listen: \"0.0.0.0:7411\", certificate: FILE, key: FILE, ca: FILE}\n"
    "  api: {unix: /run/roce-te/api.sock}\n"
    "  metrics: {listen: \"127.0.0.1:7412\"}            # as here\n"
    "  mode: observe                                   # observe; or act\n"
    "  planning: {interval_ms: 250, hysteresis: 0.05, cooldown_ms: 3000, moves_per_cycle: 16}\n"
    "  probing: {answers_per_switch_per_s: 100, attempts: 3, timeout_ms: 200}\n"
    "  report_interval_ms: 500\n"
    "  log: info                                       # error, warn, info, debug\n"
    "\nExit status: 0 stopped by a signal or --check found no fault, 1 it could not start, 2 wrong usage.\n"
    "SIGTERM and SIGINT stop it; agents keep steering as it is.";

Result<ControllerConfig> load_config(const std::string& path) {
  const auto text = read_file(path);
  if (!text) return text.error();
  return parse_controller_config(*text, path);
}

Result<Fabric> load_fabric(const std::string& path) {
  const auto text = read_file(path);
  if (!text) return text.error();
  return read_fabric_yaml(*text, path);
}

Result<void> check(const std::string& config_path) {
  const auto config = load_config(config_path);
  if (!config) return config.error();
  const auto fabric = load_fabric(config->topology_path);
  if (!fabric) return fabric.error();
  const auto tls = make_tls_context(config->agents_tls, TlsSide::kServer);
  if (!tls) return tls.error();
  if (const auto good = check_surroundings(*config); !good) return good.error();
  std::printf("%s: no fault found; %zu nodes, %zu links\n", config_path.c_str(), fabric->nodes().size(),
              fabric->links().size());
  return {};
}

/// The wiring: agents <-> AgentServer <-> Controller <-> Engine; Engine -> StoreWriter -> Store; tectl -> HttpServer ->
/// Api.
Result<void> serve(const std::string& config_path) {
  const auto config = load_config(config_path);
  if (!config) return config.error();
  const auto log = start_log("te-controller", config->log_level);
  if (!log) return log.error();
  auto fabric = load_fabric(config->topology_path);
  if (!fabric) return fabric.error();
  const auto tls = make_tls_context(config->agents_tls, TlsSide::kServer);
  if (!tls) return tls.error();
  if (const auto good = check_surroundings(*config); !good) return good.error();
  auto store = Store::open(config->state_path);
  if (!store) return store.error();
  const auto state = (*store)->load(kMovesLoaded);
  if (!state) return state.error();

  boost::asio::io_context io(1);
  Engine engine(*std::move(fabric), config->engine, monotonic_ns(), wall_us());
  engine.restore(*state, monotonic_ns());

  const std::chrono::milliseconds silence(kSilentIntervals * config->engine.report_interval_ms);
  auto agents = AgentServer::listen(io, config->agents_listen, *tls, silence);
  if (!agents) return agents.error();
  StoreWriter writer(io, *std::move(store));
  Controller controller(io, engine, **agents, writer);

  Api api(engine, {.version = TE_VERSION,
                   .topology = config->topology_path,
                   .warnings =
                       [&] {
                         std::vector<std::string> warnings = (*agents)->warnings();
                         if (!writer.problem().empty())
                           warnings.push_back(writer.problem() + "; decisions are not stored");
                         return warnings;
                       },
                   .wake = [&] { controller.wake(); },
                   .now_ns = &monotonic_ns});
  Metrics metrics(engine, **agents, writer);
  auto api_server =
      HttpServer::on_unix_socket(io, config->api_socket_path, [&](const HttpRequest& r) { return api.answer(r); });
  if (!api_server) return api_server.error();
  auto metrics_server = HttpServer::on_tcp(io, config->metrics_listen,
                                           [&](const HttpRequest& r) { return metrics.answer(r, monotonic_ns()); });
  if (!metrics_server) return metrics_server.error();

  boost::asio::signal_set signals(io, SIGTERM, SIGINT);
  signals.async_wait([&](const boost::system::error_code& failed, int number) {
    if (failed) return;
    spdlog::info("stopping on signal {}; agents keep steering as it is", number);
    (*metrics_server)->stop();
    (*api_server)->stop();
    (*agents)->stop();
    controller.stop();
    writer.finish();
    io.stop();
  });
  (*agents)->start(controller);
  controller.start();
  (*api_server)->start();
  (*metrics_server)->start();
  spdlog::info("ready: mode {}, agents on port {}, API on {}, metrics on {} port {}", to_string(engine.mode()),
               (*agents)->port(), config->api_socket_path, config->metrics_listen.host, config->metrics_listen.port);
  io.run();
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
  try {
    app.parse(argc, argv);
  } catch (const CLI::ParseError& problem) {
    return app.exit(problem) == 0 ? 0 : 2;
  }
  std::signal(SIGPIPE, SIG_IGN);
  const auto done = check_only ? te::check(config_path) : te::serve(config_path);
  if (done) return 0;
  std::fprintf(stderr, "te-controller: %s\n", done.error().message.c_str());
  return 1;
}
