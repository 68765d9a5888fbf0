// SPDX-License-Identifier: Apache-2.0
#include "lab/lifecycle.h"

#include <poll.h>
#include <sys/mount.h>
#include <unistd.h>

#include <algorithm>
#include <csignal>
#include <filesystem>
#include <fstream>
#include <functional>
#include <iterator>
#include <sstream>

#include "common/netlink/link_socket.h"
#include "common/os/clock.h"
#include "common/os/file.h"
#include "lab/commands.h"
#include "lab/fabric.h"
#include "lab/marker.h"
#include "lab/netns.h"
#include "lab/process.h"
#include "lab/state.h"
#include "lab/vlan_tags.h"

namespace te::lab {
namespace {

namespace fs = std::filesystem;

constexpr int kGraceMs = 3000;
constexpr std::int64_t kPortsTimeoutNs = 10'000'000'000;
constexpr const char* kUpProcess = "up";

volatile std::sig_atomic_t g_interrupted = 0;

void on_signal(int) { g_interrupted = 1; }

/// Lets SIGINT and SIGTERM end a build between two steps, so that it can be undone.
void watch_signals() {
  struct sigaction action {};
  action.sa_handler = on_signal;
  for (const int number : {SIGINT, SIGTERM, SIGHUP}) ::sigaction(number, &action, nullptr);
}

Result<void> run_steps(const std::vector<std::function<Result<void>()>>& steps) {
  for (const auto& step : steps) {
    if (g_interrupted != 0) return Error{"interrupted"};
    auto done = step();
    if (g_interrupted != 0) return Error{"interrupted"};
    if (!done) return done;
  }
  return {};
}

Result<void> write_sysctls(const Fabric& fabric, std::size_t index) {
  for (const Sysctl& setting : node_sysctls(fabric, index)) {
    auto written = write_sysctl(setting.path, setting.value);
    if (!written && setting.required) return written;
  }
  return {};
}

/// Puts the VLANs' tag programs on interfaces of the calling process's namespace.
Result<void> tag(const Fabric& fabric, const std::vector<std::string>& interfaces) {
  if (interfaces.empty()) return {};
  const auto tags = VlanTags::load(fabric.spec.vlans);
  if (!tags) return tags.error();
  for (const std::string& interface : interfaces) {
    auto attached = tags->attach(interface);
    if (!attached) return attached;
  }
  return {};
}

Result<void> set_up_node(const Fabric& fabric, std::size_t index, const Marker& marker) {
  const Node& node = fabric.nodes[index];
  return run_steps({
      [&] { return enter_netns(node.netns); },
      [&] { return write_sysctls(fabric, index); },
      [&] {
        return run_program({"ip", "-batch", "-"}, node_management_batch(fabric, index));
      },
      [&]() -> Result<void> {
        if (node.fabric_netns == node.netns) return {};
        auto entered = enter_netns(node.fabric_netns);
        return entered ? write_sysctls(fabric, index) : std::move(entered);
      },
      [&] {
        return run_program({"ip", "-batch", "-"}, node_ip_batch(fabric, index));
      },
      [&] { return tag(fabric, vlan_interfaces(fabric, index)); },
      [&]() -> Result<void> {
        const std::string source_routing = source_routing_batch(fabric, index);
        if (source_routing.empty()) return {};
        return run_program({"ip", fabric.is_v6() ? "-6" : "-4", "-batch", "-"}, source_routing);
      },
      [&]() -> Result<void> {
        const std::string shaping = node_tc_batch(fabric, index);
        if (shaping.empty()) return {};
        return run_program({"tc", "-batch", "-"}, shaping);
      },
      [&]() -> Result<void> {
        if (node.kind == NodeKind::kHost) return {};
        return marker.attach(fabric_ports(fabric, index));
      },
  });
}

Result<void> lay_cables(const Fabric& fabric) {
  return run_in_children({[&]() -> Result<void> {
    auto entered = enter_netns(fabric.cables_netns);
    if (!entered) return entered;
    // The interfaces here are wire: they must not say anything of their own. (Without IPv6 in the kernel they do not.)
    (void)write_sysctl("net/ipv6/conf/default/disable_ipv6", "1");
    auto laid = run_program({"ip", "-batch", "-"}, link_batch(fabric));
    if (!laid) return laid;
    // The leaf's end of a tagged cable: its port has the frames without tags, as a switch's routed VLAN has.
    std::vector<std::string> tagged;
    for (std::size_t number = 0; number < fabric.links.size(); ++number) {
      if (fabric.links[number].a.ip_name != fabric.links[number].a.name) tagged.push_back(cable_name(number));
    }
    return tag(fabric, tagged);
  }});
}

Result<void> set_up_nodes(const Fabric& fabric) {
  auto marker = Marker::load(fabric.spec.mark_bytes);
  if (!marker) return std::move(marker).error();
  std::vector<std::function<Result<void>()>> tasks;
  tasks.emplace_back([&]() -> Result<void> {
    auto entered = enter_netns(fabric.management_netns);
    if (!entered) return entered;
    if (fabric.is_v6()) {
      auto enabled = write_sysctl("net/ipv6/conf/all/disable_ipv6", "0");
      if (!enabled) return enabled;
    }
    return run_program({"ip", "-batch", "-"}, management_ip_batch(fabric));
  });
  for (std::size_t index = 0; index < fabric.nodes.size(); ++index) {
    tasks.emplace_back([&, index]() -> Result<void> {
      auto done = set_up_node(fabric, index, *marker);
      if (!done) return with_context(done.error(), fabric.nodes[index].name);
      return {};
    });
  }
  return run_in_children(tasks);
}

/// Waits until the kernel has acted on the carrier of every fabric port of one node: until then it drops what is sent,
/// and does not use routes that were added while the other end was down.
Result<void> wait_for_ports(const Fabric& fabric, std::size_t index) {
  auto entered = enter_netns(fabric.nodes[index].fabric_netns);
  if (!entered) return entered;
  std::vector<std::string> ports = fabric_ports(fabric, index);
  std::ranges::copy(vlan_interfaces(fabric, index), std::back_inserter(ports));
  const std::int64_t end_ns = monotonic_ns() + kPortsTimeoutNs;
  while (g_interrupted == 0) {
    const auto links = netlink::read_links();
    if (!links) return links.error();
    const auto is_ready = [&](const netlink::LinkMessage& link) {
      return link.operational && std::ranges::find(ports, link.name) != ports.end();
    };
    if (std::ranges::count_if(*links, is_ready) == std::ssize(ports)) return {};
    if (monotonic_ns() > end_ns) return Error{fabric.nodes[index].name + ": its ports did not come up within 10 s"};
    ::poll(nullptr, 0, 1);
  }
  return {};
}

Result<void> wait_for_all_ports(const Fabric& fabric) {
  return run_in_children({[&]() -> Result<void> {
    for (std::size_t index = 0; index < fabric.nodes.size(); ++index) {
      auto ready = wait_for_ports(fabric, index);
      if (!ready) return ready;
    }
    return {};
  }});
}

Result<void> mount_bpffs(const std::string& directory) {
  if (::mount("bpffs", directory.c_str(), "bpf", 0, nullptr) != 0) return errno_error("mount a bpffs on " + directory);
  return {};
}

Result<void> build(const Fabric& fabric) {
  const std::string directory = state_directory(fabric.spec.id);
  return run_steps({
      [&]() -> Result<void> {
        auto self = identify(::getpid());
        if (!self) return std::move(self).error();
        return note_process(fabric.spec.id, kUpProcess, *self);
      },
      [&] { return replace_file(directory + "/spec.json", spec_json(fabric.spec)); },
      [&] { return replace_file(directory + "/lab.json", lab_json(fabric)); },
      [&] { return replace_file(directory + "/topology.yaml", topology_yaml(fabric)); },
      [&] { return mount_bpffs(directory + "/bpffs"); },
      [&] {
        return run_program({"ip", "-batch", "-"}, namespace_batch(fabric));
      },
      [&] { return lay_cables(fabric); },
      [&] { return set_up_nodes(fabric); },
      [&] { return wait_for_all_ports(fabric); },
  });
}

/// Mount points at or below `directory`, deepest first.
std::vector<std::string> mounts_below(const std::string& directory) {
  std::vector<std::string> found;
  std::ifstream table("/proc/self/mountinfo");
  for (std::string line; std::getline(table, line);) {
    std::istringstream fields(line);
    std::string id;
    std::string parent;
    std::string device;
    std::string root;
    std::string point;
    fields >> id >> parent >> device >> root >> point;
    if (point == directory || point.starts_with(directory + "/")) found.push_back(point);
  }
  std::ranges::sort(found, std::greater<>());
  return found;
}

Result<void> delete_namespaces(const std::string& id) {
  // A second look: a command that was about to make one may have been on its way when it was ended.
  for (int attempt = 0; attempt < 2; ++attempt) {
    std::string batch;
    for (const std::string& name : netns_with_prefix(netns_prefix(id))) batch += "netns del " + name + "\n";
    if (batch.empty()) return {};
    auto deleted = run_program({"ip", "-force", "-batch", "-"}, batch);
    if (!deleted && !netns_with_prefix(netns_prefix(id)).empty()) return deleted;
  }
  return {};
}

}  // namespace

Result<std::string> bring_up(const Spec& spec) {
  watch_signals();
  auto id = claim_id(spec.id);
  if (!id) return id;
  Spec named = spec;
  named.id = *id;
  const Fabric fabric = lay_out(named);
  const auto built = build(fabric);
  forget_process(*id, kUpProcess);
  if (built) return *id;
  const auto removed = take_down(*id);
  Error error = built.error();
  if (!removed) error.message += "; and clearing up failed: " + removed.error().message;
  return with_context(std::move(error), "build lab " + *id);
}

Result<void> take_down(const std::string& id) {
  const std::string directory = state_directory(id);
  const auto namespaces = netns_with_prefix(netns_prefix(id));
  if (namespaces.empty() && !fs::exists(directory)) return Error{"there is no lab '" + id + "'"};
  auto processes = noted_processes(id);
  std::ranges::copy(processes_in(namespaces), std::back_inserter(processes));
  end_processes(processes, kGraceMs);
  auto deleted = delete_namespaces(id);
  if (!deleted) return deleted;
  for (const std::string& point : mounts_below(directory)) {
    if (::umount2(point.c_str(), MNT_DETACH) != 0) return errno_error("unmount " + point);
  }
  std::error_code problem;
  fs::remove_all(directory, problem);
  if (problem) return Error{"remove " + directory + ": " + problem.message()};
  ::rmdir(kRunDirectory);
  return {};
}

Result<void> execute_in(const std::string& id, const std::string& node, Side side,
                        const std::vector<std::string>& command) {
  auto fabric = read_lab(id);
  if (!fabric) return std::move(fabric).error();
  const std::size_t index = find_node(*fabric, node);
  if (index == fabric->nodes.size() && node != "mgmt") return Error{"lab " + id + " has no node '" + node + "'"};
  std::string netns = fabric->management_netns;
  if (node != "mgmt") {
    const Node& place = fabric->nodes[index];
    netns = side == Side::kFabric ? place.fabric_netns : place.netns;
  }
  auto entered = enter_netns(netns);
  if (!entered) return entered;
  std::vector<std::string> words = command;
  std::vector<char*> argv;
  std::ranges::transform(words, std::back_inserter(argv), [](std::string& word) { return word.data(); });
  argv.push_back(nullptr);
  ::execvp(argv[0], argv.data());
  return errno_error("run " + command[0]);
}

}  // namespace te::lab
