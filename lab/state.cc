// SPDX-License-Identifier: Apache-2.0
#include "lab/state.h"

#include <fmt/format.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <filesystem>
#include <iterator>
#include <sstream>

#include "common/os/file.h"
#include "common/yaml/yaml_reader.h"
#include "lab/netns.h"

namespace te::lab {
namespace {

namespace fs = std::filesystem;

using Out = std::back_insert_iterator<std::string>;

std::string join(const std::vector<std::string>& words) {
  std::string text;
  for (const std::string& word : words) text += (text.empty() ? "" : ", ") + word;
  return text;
}

std::string pid_file(const std::string& id, const std::string& name) { return state_directory(id) + "/pids/" + name; }

Result<void> make_directories(const std::string& directory) {
  for (const char* sub : {"", "/qp", "/stats", "/pids", "/bpffs", "/degraded", "/modes"}) {
    if (::mkdir((directory + sub).c_str(), 0755) != 0 && errno != EEXIST) return errno_error("make " + directory + sub);
  }
  return {};
}

Result<bool> try_claim(const std::string& id) {
  const std::string directory = state_directory(id);
  if (::mkdir(directory.c_str(), 0755) != 0) {
    if (errno == EEXIST) return false;
    return errno_error("make " + directory);
  }
  if (!netns_with_prefix(netns_prefix(id)).empty()) {
    ::rmdir(directory.c_str());
    return false;
  }
  const auto made = make_directories(directory);
  if (!made) return made.error();
  return true;
}

}  // namespace

std::string state_directory(const std::string& id) { return std::string(kRunDirectory) + "/" + id; }

std::vector<std::string> lab_ids() {
  std::vector<std::string> ids;
  std::error_code problem;
  for (fs::directory_iterator entry(kRunDirectory, problem), end; !problem && entry != end; entry.increment(problem)) {
    if (is_lab_id(entry->path().filename().string())) ids.push_back(entry->path().filename().string());
  }
  std::ranges::sort(ids);
  return ids;
}

Result<std::string> claim_id(const std::string& id) {
  if (::mkdir(kRunDirectory, 0755) != 0 && errno != EEXIST) {
    return with_context(errno_error(std::string("make ") + kRunDirectory), "te-lab needs root");
  }
  if (!id.empty()) {
    auto claimed = try_claim(id);
    if (!claimed) return std::move(claimed).error();
    if (!*claimed) return Error{"lab '" + id + "' is there already (or left over): run te-lab down --id " + id};
    return id;
  }
  constexpr int kMaxLabs = 1000;
  for (int number = 1; number <= kMaxLabs; ++number) {
    std::string candidate = "lab" + std::to_string(number);
    auto claimed = try_claim(candidate);
    if (!claimed) return std::move(claimed).error();
    if (*claimed) return candidate;
  }
  return Error{"too many labs: run te-lab down --all"};
}

Result<std::string> choose_lab(const std::string& id) {
  if (!id.empty()) {
    if (is_lab_id(id)) return id;
    return Error{"'" + id + "' is not a lab id"};
  }
  const auto ids = lab_ids();
  if (ids.size() == 1) return ids[0];
  if (ids.empty()) return Error{"there is no lab: make one with te-lab up"};
  return Error{"there are several labs, choose one with --id: " + join(ids)};
}

std::string spec_json(const Spec& spec) {
  return fmt::format(
      R"({{"id": "{}", "hosts": {}, "nics": {}, "leaves": {}, "spines": {}, "rate": "{:.0f}bit", "mtu": {}, "seed": {}, "family": {}, "nic_netns": {}, "vlan": "{}", "mark_bytes": {}}})",
      spec.id, spec.hosts, spec.nics, spec.leaves, spec.spines, spec.rate_bps, spec.mtu, spec.seed,
      spec.family == IpAddress::Family::kV6 ? 6 : 4, spec.nic_netns, format_vlans(spec.vlans), spec.mark_bytes);
}

std::string lab_json(const Fabric& fabric) {
  std::string text =
      fmt::format("{{\n\"spec\": {},\n\"management_netns\": \"{}\",\n\"controller\": \"{}\",\n\"nodes\": [\n",
                  spec_json(fabric.spec), fabric.management_netns, fabric.controller.to_string());
  const Out out(text);
  const char* comma = "";
  for (const Node& node : fabric.nodes) {
    fmt::format_to(
        out,
        R"({}{{"name": "{}", "kind": "{}", "netns": "{}", "fabric_netns": "{}", "management": "{}", "hash_seed": {}}})",
        comma, node.name, kind_name(node.kind), node.netns, node.fabric_netns, node.management.to_string(),
        node.hash_seed);
    comma = ",\n";
  }
  text += "],\n\"links\": [\n";
  comma = "";
  const auto port = [&](const Port& end) {
    return fmt::format(R"({{"node": "{}", "port": "{}", "mac": "{}", "address": "{}"}})", fabric.nodes[end.node].name,
                       end.name, end.mac, end.address.to_string());
  };
  for (const Link& link : fabric.links) {
    fmt::format_to(out, R"({}{{"a": {}, "b": {}}})", comma, port(link.a), port(link.b));
    comma = ",\n";
  }
  return text + "]\n}\n";
}

Result<Fabric> read_lab(const std::string& id) {
  const std::string path = state_directory(id) + "/spec.json";
  if (!fs::exists(state_directory(id))) return Error{"there is no lab '" + id + "'"};
  auto text = read_file(path);
  if (!text) return Error{"lab '" + id + "' is incomplete (" + text.error().message + "): run te-lab down --id " + id};
  auto root = YamlReader::parse(*text, path);
  if (!root) return std::move(root).error();
  auto spec = read_spec(*root, Spec{});
  if (!spec) return std::move(spec).error();
  return lay_out(*spec);
}

std::string topology_yaml(const Fabric& fabric) {
  std::string text = "version: 1\nnodes:\n";
  const Out out(text);
  for (const Node& node : fabric.nodes) {
    fmt::format_to(out, "  - {{name: {}, kind: {}}}\n", node.name, kind_name(node.kind));
  }
  text += "links:\n";
  const auto port = [&](const Port& end) {
    return fmt::format("{{node: {}, port: {}, addresses: [\"{}\"]}}", fabric.nodes[end.node].name, end.name,
                       end.address.to_string());
  };
  for (const Link& link : fabric.links) {
    fmt::format_to(out, "  - {{a: {}, b: {}, capacity: {:.0f}bit}}\n", port(link.a), port(link.b),
                   fabric.spec.rate_bps);
  }
  return text;
}

Result<void> note_process(const std::string& id, const std::string& name, const ProcessId& process) {
  return replace_file(pid_file(id, name), fmt::format("{} {}\n", process.pid, process.start_ticks));
}

void forget_process(const std::string& id, const std::string& name) { ::unlink(pid_file(id, name).c_str()); }

std::vector<ProcessId> noted_processes(const std::string& id) {
  std::vector<ProcessId> processes;
  std::error_code problem;
  for (fs::directory_iterator entry(state_directory(id) + "/pids", problem), end; !problem && entry != end;
       entry.increment(problem)) {
    auto text = read_file(entry->path().string());
    if (!text) continue;
    std::istringstream fields(*text);
    ProcessId process;
    if (fields >> process.pid >> process.start_ticks && process.pid > 0 && process.pid != ::getpid() &&
        is_alive(process)) {
      processes.push_back(process);
    }
  }
  return processes;
}

}  // namespace te::lab
