// SPDX-License-Identifier: Apache-2.0
// te-lab: leaf-spine fabrics of network namespaces on one machine, with RoCEv2 endpoints.
#include <CLI/CLI.hpp>
#include <cmath>
#include <cstdio>
#include <functional>

#include "common/base/units.h"
#include "common/os/file.h"
#include "lab/endpoint/endpoint.h"
#include "lab/fault_commands.h"
#include "lab/lifecycle.h"
#include "lab/state.h"
#include "lab/status.h"
#include "lab/traffic.h"

namespace te::lab {
namespace {

constexpr int kBadCommandLine = 2;
constexpr double kMostSeconds = 1e8;

int fail(const Error& error) {
  std::fprintf(stderr, "te-lab: %s\n", error.message.c_str());
  return 1;
}

struct UpFlags {
  std::string file;
  Spec spec;
  std::string rate = "50mbit";
  std::string vlan;
  int family = 4;
};

Result<Spec> spec_of(const UpFlags& flags) {
  Spec spec = flags.spec;
  auto rate_bps = parse_rate_bps(flags.rate);
  if (!rate_bps) return std::move(rate_bps).error();
  spec.rate_bps = *rate_bps;
  auto vlans = parse_vlans(flags.vlan);
  if (!vlans) return with_context(std::move(vlans).error(), "--vlan");
  spec.vlans = *std::move(vlans);
  spec.family = flags.family == 6 ? IpAddress::Family::kV6 : IpAddress::Family::kV4;
  if (flags.file.empty()) return checked(std::move(spec));
  auto text = read_file(flags.file);
  if (!text) return std::move(text).error();
  auto root = YamlReader::parse(*text, flags.file);
  if (!root) return std::move(root).error();
  return read_spec(*root, std::move(spec));
}

int up(const UpFlags& flags) {
  const auto spec = spec_of(flags);
  if (!spec) return fail(spec.error()), kBadCommandLine;
  const auto id = bring_up(*spec);
  if (!id) return fail(id.error());
  std::printf("%s\n", id->c_str());
  return 0;
}

int down(const std::string& id, bool all) {
  std::vector<std::string> ids = lab_ids();
  if (!all) {
    const auto chosen = choose_lab(id);
    if (!chosen) return fail(chosen.error());
    ids = {*chosen};
  }
  int code = 0;
  for (const std::string& lab : ids) {
    const auto removed = take_down(lab);
    if (!removed) code = fail(removed.error());
  }
  return code;
}

int status(const std::string& id, bool as_json) {
  const std::vector<std::string> ids = id.empty() ? lab_ids() : std::vector{id};
  std::string text;
  for (const std::string& lab : ids) {
    const auto line = describe(lab, as_json);
    if (!line) return fail(line.error());
    text += (text.empty() ? "" : as_json ? ",\n" : "\n") + *line;
  }
  if (as_json) {
    std::printf("[%s]\n", text.c_str());
  } else {
    std::printf("%s\n", text.empty() ? "no labs" : text.c_str());
  }
  return 0;
}

int execute(const std::string& id, const std::string& node, Side side, const std::vector<std::string>& command) {
  const auto chosen = choose_lab(id);
  if (!chosen) return fail(chosen.error());
  return fail(execute_in(*chosen, node, side, command).error());
}

struct TrafficFlags {
  TrafficOptions options;
  std::string verb = "write";
  std::string labels_path;
  std::vector<std::string> relabels;
};

/// "MS:FLOW:LABEL"
Result<Relabel> parse_relabel(const std::string& text) {
  Relabel relabel;
  unsigned long long after_ms = 0;
  unsigned long long flow = 0;
  unsigned label = 0;
  if (std::sscanf(text.c_str(), "%llu:%llu:%u", &after_ms, &flow, &label) != 3) {  // NOLINT(cert-err34-c)
    return Error{"'" + text + "' is not MS:FLOW:LABEL"};
  }
  relabel.after_ms = static_cast<std::int64_t>(after_ms);
  relabel.flow = flow;
  relabel.flow_label = label;
  return relabel;
}

int traffic(const std::string& id, TrafficFlags flags) {
  const auto chosen = choose_lab(id);
  if (!chosen) return fail(chosen.error());
  flags.options.verb = flags.verb == "send" ? Verb::kSend : Verb::kWrite;
  std::vector<Relabel> relabels;
  for (const std::string& text : flags.relabels) {
    const auto relabel = parse_relabel(text);
    if (!relabel) return fail(relabel.error());
    relabels.push_back(*relabel);
  }
  if (std::isnan(flags.options.seconds)) return fail(Error{"--seconds is a number"}), kBadCommandLine;
  const auto ran = run_traffic(*chosen, flags.options, flags.labels_path, relabels);
  return ran ? 0 : fail(ran.error());
}

void add_traffic(CLI::App& app, TrafficFlags& flags) {
  TrafficOptions& options = flags.options;
  app.add_option("--pattern", options.pattern, "Who sends to whom")
      ->check(CLI::IsMember(pattern_names()))
      ->capture_default_str();
  app.add_option("--qps", options.qps, "QPs of each connection")->check(CLI::Range(1, 64))->capture_default_str();
  app.add_option("--seconds", options.seconds, "How long to send; 0: until a signal")
      ->check(CLI::Range(0.0, kMostSeconds))
      ->capture_default_str();
  app.add_option("--verb", flags.verb, "write or send")->check(CLI::IsMember({"write", "send"}))->capture_default_str();
  app.add_option("--message-bytes", options.message_bytes, "Size of a message")
      ->check(CLI::Range(1, 1 << 30))
      ->capture_default_str();
  app.add_option("--window-packets", options.window_packets, "Packets a QP has outstanding at most")
      ->check(CLI::Range(1, 4096))
      ->capture_default_str();
  app.add_option("--ack-every", options.ack_every, "Packets that one acknowledgement covers at most")
      ->check(CLI::Range(1, 1024))
      ->capture_default_str();
  app.add_option("--timeout-ms", options.timeout_ms, "Wait before what is not acknowledged is sent again")
      ->check(CLI::Range(10, 60000))
      ->capture_default_str();
  app.add_option(
         "--retries", options.retries,
         "Timeouts in a row that a QP survives (InfiniBand: 7 at most; NICs with adaptive retransmission: more)")
      ->check(CLI::Range(0, 1000))
      ->capture_default_str();
  app.add_option("--flow-labels", flags.labels_path, "YAML file that gives flows a flow label (and so a source port)")
      ->check(CLI::ExistingFile);
  // For tests: MS:FLOW:LABEL changes a flow's label while it runs.
  app.add_option("--relabel", flags.relabels)->group("");
}

void add_up(CLI::App& app, UpFlags& flags) {
  app.add_option("--file", flags.file, "YAML spec; its values win over flags")->check(CLI::ExistingFile);
  app.add_option("--id", flags.spec.id, "Name of the lab, [a-z0-9], at most 16 (default: lab1, lab2, ...)");
  app.add_option("--hosts", flags.spec.hosts, "Hosts, attached to the leaves round robin")->capture_default_str();
  app.add_option("--nics", flags.spec.nics, "NICs of each host, each at a leaf of its own; leaves is a multiple")
      ->capture_default_str();
  app.add_option("--leaves", flags.spec.leaves, "Leaf switches")->capture_default_str();
  app.add_option("--spines", flags.spec.spines, "Spine switches; each leaf has a link to each")->capture_default_str();
  app.add_option("--rate", flags.rate, "Rate of every link, each direction")->capture_default_str();
  app.add_option("--mtu", flags.spec.mtu, "MTU of every fabric interface, bytes")->capture_default_str();
  app.add_option("--seed", flags.spec.seed, "Decides ECMP hashes, QPNs and PSNs")->capture_default_str();
  app.add_option("--family", flags.family, "IP version of the fabric")
      ->check(CLI::IsMember({4, 6}))
      ->capture_default_str();
  app.add_flag("--nic-netns", flags.spec.nic_netns,
               "The NICs of each host, and its endpoint, in a namespace of their own, as a pod's");
  app.add_option("--vlan", flags.vlan,
                 "VLAN of the NICs, whose addresses then are on eth0.VLAN; two, as in 100,200: the outer one first");
  app.add_option("--mark-bytes", flags.spec.mark_bytes,
                 "Queue length from which switches mark CE (default: 24 packets)");
}

int run(int argc, char** argv) {
  CLI::App app{"Leaf-spine fabrics of network namespaces on this machine, with RoCEv2 endpoints. Needs root."};
  app.set_version_flag("--version", TE_VERSION);
  app.footer("Exit codes: 0 done, 1 failed, 2 the command line cannot be used");
  app.require_subcommand(1);
  std::function<int()> action;
  std::string id;
  const auto add_id = [&](CLI::App& command) { command.add_option("--id", id, "The lab (default: the only one)"); };

  UpFlags up_flags;
  auto* up_command = app.add_subcommand("up", "Build a fabric; prints its id");
  add_up(*up_command, up_flags);
  up_command->callback([&] { action = [&] { return up(up_flags); }; });

  bool all = false;
  auto* down_command = app.add_subcommand("down", "Remove a fabric and end every process in it");
  add_id(*down_command);
  down_command->add_flag("--all", all, "Every lab on this machine")->excludes("--id");
  down_command->callback([&] { action = [&] { return down(id, all); }; });

  std::string format = "text";
  auto* status_command = app.add_subcommand("status", "Show the labs of this machine");
  status_command->add_option("--id", id, "The lab (default: all of them)");
  status_command->add_option("-o,--output", format, "text or json")->check(CLI::IsMember({"text", "json"}));
  status_command->callback([&] { action = [&] { return status(id, format == "json"); }; });

  std::string node;
  std::vector<std::string> command_line;
  auto* exec_command = app.add_subcommand("exec", "Run a command in a node's namespace: te-lab exec h1 -- ip addr");
  add_id(*exec_command);
  bool management = false;
  exec_command->add_flag("--management", management,
                         "Where the host's agent runs; with --nic-netns another namespace than that of its NICs");
  exec_command->add_option("node", node, "h1, leaf1, spine1, ... or mgmt")->required();
  exec_command->add_option("command", command_line, "After --: a program and its arguments")->required();
  exec_command->callback([&] {
    action = [&] { return execute(id, node, management ? Side::kManagement : Side::kFabric, command_line); };
  });

  add_fault_commands(app, action);

  TrafficFlags traffic_flags;
  auto* traffic_command = app.add_subcommand("traffic", "Run RoCEv2 traffic between the hosts, one endpoint each");
  add_id(*traffic_command);
  add_traffic(*traffic_command, traffic_flags);
  traffic_command->callback([&] { action = [&] { return traffic(id, traffic_flags); }; });

  std::string plan_path;
  auto* endpoint_command = app.add_subcommand("endpoint", "What `traffic` starts in each host")->group("");
  endpoint_command->add_option("--plan", plan_path)->required();
  endpoint_command->callback([&] {
    action = [&] {
      const auto ran = run_endpoint(plan_path);
      return ran ? 0 : fail(ran.error());
    };
  });

  try {
    app.parse(argc, argv);
  } catch (const CLI::ParseError& stop) {  // --help too
    return app.exit(stop) == 0 ? 0 : kBadCommandLine;
  }
  return action();
}

}  // namespace
}  // namespace te::lab

int main(int argc, char** argv) { return te::lab::run(argc, argv); }
