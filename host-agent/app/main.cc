// SPDX-License-Identifier: Apache-2.0
#include <spdlog/spdlog.h>

#include <CLI/CLI.hpp>
#include <boost/asio/io_context.hpp>
#include <boost/asio/signal_set.hpp>
#include <chrono>
#include <csignal>
#include <cstdio>
#include <filesystem>
#include <memory>
#include <string>

#include "common/os/file.h"
#include "common/os/log.h"
#include "host-agent/app/agent.h"
#include "host-agent/app/doctor.h"
#include "host-agent/app/switch_agent.h"
#include "host-agent/core/agent_config.h"
#include "host-agent/core/source_board.h"
#include "host-agent/io/capabilities.h"
#include "host-agent/io/instance_lock.h"
#include "host-agent/io/net_namespaces.h"

namespace te::agent {
namespace {

namespace asio = boost::asio;

// Exit codes, in --help too.
constexpr int kDone = 0;
constexpr int kFailed = 1;
constexpr int kBadConfiguration = 2;

struct CommandLine {
  std::string config_file;
  std::string attach;
  std::string qp_source;
  std::string bpffs;
  std::string output = "table";
};

/// The file's settings, with those of the command line instead where given.
Result<AgentConfig> load_config(const CommandLine& line) {
  const auto text = read_file(line.config_file);
  if (!text) return text.error();
  auto config = parse_agent_config(*text, line.config_file);
  if (!config) return config;
  if (!line.attach.empty()) {
    const auto attach = parse_attach(line.attach);
    if (!attach) return with_context(attach.error(), "--attach");
    config->attach = *attach;
  }
  if (!line.qp_source.empty()) {
    auto qp_source = parse_qp_source(line.qp_source);
    if (!qp_source) return with_context(std::move(qp_source).error(), "--qp-source");
    config->qp_source = *std::move(qp_source);
  }
  if (!line.bpffs.empty()) config->bpffs = line.bpffs;
  return config;
}

int fail(const Error& error) {
  spdlog::error("{}", error.message);
  return kFailed;
}

/// At SIGHUP, reads the certificate files for the next session.
template <class Program>
void take_hangups(asio::signal_set& hangups, Program& program) {
  hangups.async_wait([&](const boost::system::error_code& cancelled, int) {
    if (cancelled) return;
    if (const auto reloaded = program.credentials().reload(); reloaded) {
      spdlog::info("certificate files read again; the next session uses them");
    } else {
      spdlog::warn("the certificate files cannot be used, the ones before stay in use: {}", reloaded.error().message);
    }
    take_hangups(hangups, program);
  });
}

/// Runs the agent in one of its roles until SIGTERM.
template <class Program>
int run_as(const AgentConfig& config, const char* farewell) {
  auto credentials = Credentials::load({config.certificate, config.key, config.ca}, config.node);
  if (!credentials) return fail(credentials.error());
  const auto lock = InstanceLock::take(config);
  if (!lock) return fail(lock.error());
  asio::io_context io(1);
  auto agent = Program::open(io, config, *std::move(credentials));
  if (!agent) return fail(agent.error());
  if (const auto dropped = keep_only_capabilities(Program::kCapabilities); !dropped) return fail(dropped.error());

  asio::signal_set hangups(io, SIGHUP);
  take_hangups(hangups, **agent);
  bool stopping = false;
  asio::signal_set signals(io, SIGTERM, SIGINT);
  signals.async_wait([&](const boost::system::error_code& cancelled, int) {
    if (cancelled) return;
    spdlog::info("{}", farewell);
    stopping = true;
    hangups.cancel();
    (*agent)->stop();
  });
  (*agent)->start();
  while (!stopping && io.run_one() > 0) {
  }
  // Ends as soon as all loops have; only a name lookup cannot be interrupted.
  io.run_for(std::chrono::seconds(2));
  return kDone;
}

int run(const AgentConfig& config) {
  if (config.role == Role::kSwitch) return run_as<SwitchAgent>(config, "stopping");
  return run_as<Agent>(config,
                       "stopping; programs and steering stay in the kernel ('host-agent cleanup' removes them)");
}

int doctor(const AgentConfig& config, const CommandLine& line) {
  const auto sources = examine_host(config);
  const std::string text = line.output == "json" ? sources_as_json(sources) + "\n" : sources_as_table(sources);
  std::fputs(text.c_str(), stdout);
  SourceBoard board;
  for (const v1::Source& source : sources) board.set(source.name(), source.state(), source.reason());
  const bool works = board.is_on(config.role == Role::kSwitch ? "links" : "tc");
  return works && board.is_on("certificate") ? kDone : kFailed;
}

int cleanup(const AgentConfig& config) {
  if (config.role == Role::kSwitch) {
    spdlog::info("nothing to remove: in role switch the agent leaves nothing in the kernel");
    return kDone;
  }
  const auto lock = InstanceLock::take(config);
  if (!lock) return fail(with_context(lock.error(), "clean up"));
  NetNamespaces namespaces(config.interfaces);
  bool is_whole = true;
  for (const NicName& nic : config.interfaces) {
    const auto entered = namespaces.run_in(nic.netns, [] {});
    if (entered) continue;
    std::error_code unknown;  // of one that is gone, nothing is left; by TCX, what is attached goes all the same
    is_whole &= !std::filesystem::exists(nic.netns, unknown);
    spdlog::warn("filters of clsact may stay on {}: {}", to_string(nic), entered.error().message);
  }
  if (auto removed = BpfDatapath::cleanup(datapath_options(config, namespaces)); !removed)
    return fail(with_context(removed.error(), "clean up"));
  std::error_code not_empty;
  std::filesystem::remove(config.bpffs + "/roce-te", not_empty);
  spdlog::info("removed the programs of {}", config.node);
  return is_whole ? kDone : kFailed;
}

}  // namespace
}  // namespace te::agent

int main(int argc, char** argv) {
  using namespace te::agent;

  CLI::App app{
      "host-agent: watches the RoCEv2 flows of this host, probes their paths and steers them for te-controller"};
  app.require_subcommand(1);
  app.set_version_flag("--version", TE_VERSION);
  app.footer(
      "Exit codes: 0 done, 1 failed (doctor: tc, on a switch links, or the certificate does not work here), 2 the "
      "command line or the configuration cannot be used");

  CommandLine line;
  const auto command = [&](const char* name, const char* help) {
    CLI::App* sub = app.add_subcommand(name, help);
    sub->add_option("--config", line.config_file, "Configuration file (YAML); needed");
    sub->add_option("--bpffs", line.bpffs, "A mounted bpffs; programs are pinned in DIR/roce-te/NODE");
    return sub;
  };
  CLI::App* run_command = command("run", "Run until SIGTERM; programs and steering stay when it ends");
  CLI::App* doctor_command = command("doctor", "Tell what can be observed and done on this host, and why not");
  CLI::App* cleanup_command = command("cleanup", "Remove all programs and steering of this node from the kernel");
  for (CLI::App* sub : {run_command, doctor_command}) {
    sub->add_option("--attach", line.attach, "auto, tcx or clsact");
    sub->add_option("--qp-source", line.qp_source, "netlink, file:PATH or none");
  }
  doctor_command->add_option("-o,--output", line.output, "table or json")->check(CLI::IsMember({"table", "json"}));
  try {
    app.parse(argc, argv);
  } catch (const CLI::ParseError& stop) {  // --help too
    return app.exit(stop) == 0 ? kDone : kBadConfiguration;
  }
  if (line.config_file.empty()) {
    const std::string name = app.get_subcommands().front()->get_name();
    std::fprintf(stderr, "host-agent %s needs --config FILE (/etc/roce-te/host-agent.yaml, say)\n", name.c_str());
    return kBadConfiguration;
  }

  auto config = load_config(line);
  const auto log = te::start_log("host-agent", config ? config->log : "info");
  if (!log || !config) {
    spdlog::error("{}", config ? log.error().message : config.error().message);
    return kBadConfiguration;
  }
  if (run_command->parsed()) return run(*config);
  if (doctor_command->parsed()) return doctor(*config, line);
  if (cleanup_command->parsed()) return cleanup(*config);
  return kFailed;
}
