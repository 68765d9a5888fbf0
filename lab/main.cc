// SPDX-License-Identifier: Apache-2.0
// te-lab: leaf-spine fabrics of network namespaces on one machine, with RoCEv2 endpoints.
#include <CLI/CLI.hpp>
#include <cstdio>
#include <functional>

#include "common/base/units.h"
#include "common/os/file.h"
#include "lab/lifecycle.h"
#include "lab/state.h"

namespace te::lab {
namespace {

int fail(const Error& error) {
  std::fprintf(stderr, "te-lab: %s\n", error.message.c_str());
  return 1;
}

struct UpFlags {
  std::string file;
  Spec spec;
  std::string rate = "50mbit";
  int family = 4;
};

Result<Spec> spec_of(const UpFlags& flags) {
  Spec spec = flags.spec;
  auto rate_bps = parse_rate_bps(flags.rate);
  if (!rate_bps) return std::move(rate_bps).error();
  spec.rate_bps = *rate_bps;
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
  if (!spec) return fail(spec.error());
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
  if (as_json)
    std::printf("[%s]\n", text.c_str());
  else
    std::printf("%s\n", text.empty() ? "no labs" : text.c_str());
  return 0;
}

int execute(const std::string& id, const std::string& node, const std::vector<std::string>& command) {
  const auto chosen = choose_lab(id);
  if (!chosen) return fail(chosen.error());
  return fail(execute_in(*chosen, node, command).error());
}

void add_up(CLI::App& app, UpFlags& flags) {
  app.add_option("--file", flags.file, "YAML spec; its values win over flags")->check(CLI::ExistingFile);
  app.add_option("--id", flags.spec.id, "Name of the lab, [a-z0-9], at most 16 (default: lab1, lab2, ...)");
  app.add_option("--hosts", flags.spec.hosts, "Hosts, attached to the leaves round robin")->capture_default_str();
  app.add_option("--leaves", flags.spec.leaves, "Leaf switches")->capture_default_str();
  app.add_option("--spines", flags.spec.spines, "Spine switches; each leaf has a link to each")->capture_default_str();
  app.add_option("--rate", flags.rate, "Rate of every link, each direction")->capture_default_str();
  app.add_option("--mtu", flags.spec.mtu, "MTU of every fabric interface, bytes")->capture_default_str();
  app.add_option("--seed", flags.spec.seed, "Decides ECMP hashes, QPNs and PSNs")->capture_default_str();
  app.add_option("--family", flags.family, "IP version of the fabric")
      ->check(CLI::IsMember({4, 6}))
      ->capture_default_str();
  app.add_option("--mark-bytes", flags.spec.mark_bytes,
                 "Queue length from which switches mark CE (default: 36 packets)");
}

int run(int argc, char** argv) {
  CLI::App app{"Leaf-spine fabrics of network namespaces on this machine, with RoCEv2 endpoints. Needs root."};
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
  down_command->add_flag("--all", all, "Every lab on this machine");
  down_command->callback([&] { action = [&] { return down(id, all); }; });

  std::string format = "text";
  auto* status_command = app.add_subcommand("status", "Show the labs of this machine");
  add_id(*status_command);
  status_command->add_option("-o,--output", format, "text or json")->check(CLI::IsMember({"text", "json"}));
  status_command->callback([&] { action = [&] { return status(id, format == "json"); }; });

  std::string node;
  std::vector<std::string> command_line;
  auto* exec_command = app.add_subcommand("exec", "Run a command in a node's namespace: te-lab exec h1 -- ip addr");
  add_id(*exec_command);
  exec_command->add_option("node", node, "h1, leaf1, spine1, ... or mgmt")->required();
  exec_command->add_option("command", command_line, "Program and arguments")->required();
  exec_command->callback([&] { action = [&] { return execute(id, node, command_line); }; });

  CLI11_PARSE(app, argc, argv);
  return action();
}

}  // namespace
}  // namespace te::lab

int main(int argc, char** argv) { return te::lab::run(argc, argv); }
