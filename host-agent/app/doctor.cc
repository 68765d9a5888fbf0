// SPDX-License-Identifier: Apache-2.0
#include "host-agent/app/doctor.h"

#include <unistd.h>

#include <boost/asio/io_context.hpp>
#include <filesystem>
#include <set>
#include <string>
#include <system_error>

#include "common/os/clock.h"
#include "host-agent/app/host.h"
#include "host-agent/core/source_board.h"
#include "host-agent/io/controller_stream.h"
#include "host-agent/io/credentials.h"
#include "host-agent/io/link_watcher.h"
#include "host-agent/io/net_namespaces.h"
#include "host-agent/io/prober.h"

namespace te::agent {
namespace {

/// Why the programs cannot be loaded or where they cannot be attached; empty: they can.
std::string tc_problem(const AgentConfig& config, NetNamespaces& namespaces) {
  if (const auto permitted = BpfDatapath::probe_permission(); !permitted) return permitted.error().message;
  const BpfDatapathOptions scratch{.pin_directory = config.bpffs + "/roce-te/doctor+" + std::to_string(::getpid())};
  const auto loaded = BpfDatapath::open(scratch);
  const auto cleaned = BpfDatapath::cleanup(scratch);
  if (!loaded) return loaded.error().message;
  if (!cleaned) return cleaned.error().message;
  std::vector<NicPort> ports = ports_of(config.interfaces);
  if (auto read = read_nic_ports(ports, namespaces); !read) return read.error().message;
  std::string missing;
  for (const NicPort& port : ports) {
    if (port.ifindex != 0) continue;
    const auto entered = namespaces.run_in(port.name.netns, [] {});
    missing += (missing.empty() ? "interface " : "; interface ") + to_string(port.name) +
               (entered ? " does not exist" : ": " + entered.error().message);
  }
  return missing;
}

void examine_tc(const AgentConfig& config, NetNamespaces& namespaces, SourceBoard& board) {
  const std::string problem = tc_problem(config, namespaces);
  std::error_code ignored;
  const bool pinned = std::filesystem::exists(pin_directory(config), ignored);
  const std::string found = pinned ? "programs of an agent are pinned in " + pin_directory(config) : "";
  board.set("tc", problem.empty() ? v1::Source::ON : v1::Source::OFF, problem.empty() ? found : problem);
}

void examine_links(const AgentConfig& config, NetNamespaces& namespaces, SourceBoard& board) {
  boost::asio::io_context io;
  LinkWatcher links(io, config.interfaces, namespaces, [](const v1::LinkUpdate&) { return false; });
  const auto opened = links.open();
  const std::string problem = opened ? "" : opened.error().message;
  if (!links.is_watching()) return static_cast<void>(board.set("links", v1::Source::OFF, problem));
  const std::string found =
      std::to_string(links.present()) + " watched, " + std::to_string(links.with_carrier()) + " with carrier";
  board.set("links", v1::Source::ON, problem.empty() ? found : found + "; " + problem);
}

std::string days(std::int64_t seconds) { return std::to_string(seconds / 86400) + " days"; }

void examine_controllers(const AgentConfig& config, Credentials& credentials, SourceBoard& board) {
  std::string problems;
  for (const Endpoint& controller : config.controllers) {
    const auto reached = probe_controller(credentials.current(), controller);
    if (reached) return static_cast<void>(board.set("controller", v1::Source::ON, to_string(controller)));
    problems += (problems.empty() ? "" : "; ") + to_string(controller) + ": " + reached.error().message;
  }
  board.set("controller", v1::Source::OFF, problems);
}

void examine_session(const AgentConfig& config, SourceBoard& board) {
  auto credentials = Credentials::load({config.certificate, config.key, config.ca}, config.node);
  const auto left_s = credentials ? credentials->seconds_left() : Result<std::int64_t>(credentials.error());
  if (!left_s) {
    board.set("certificate", v1::Source::OFF, left_s.error().message);
  } else if (*left_s <= 0) {
    board.set("certificate", v1::Source::OFF, "it, or that of the authority, expired " + days(-*left_s) + " ago");
  } else {
    board.set("certificate", v1::Source::ON, "for " + days(*left_s) + " more");
  }
  if (credentials) {
    examine_controllers(config, *credentials, board);
  } else {
    board.set("controller", v1::Source::OFF, "not tried without a certificate");
  }
}

void examine_probe(const AgentConfig& config, NetNamespaces& namespaces, SourceBoard& board) {
  boost::asio::io_context io;
  std::set<std::string> places;
  for (const NicName& nic : config.interfaces) places.insert(nic.netns);
  bool works = false;
  std::string problems;
  for (const std::string& netns : places) {
    Prober prober(io, [](const ProbeReport&) {});
    Result<void> opened;
    const auto entered = namespaces.run_in(netns, [&] { opened = prober.open(); });
    works |= entered && opened;
    if (!entered || !opened) problems += (problems.empty() ? "" : "; ") + (entered ? opened : entered).error().message;
  }
  board.set("probe", works ? v1::Source::ON : v1::Source::OFF, problems);
}

}  // namespace

std::vector<v1::Source> examine_host(const AgentConfig& config) {
  SourceBoard board;
  NetNamespaces namespaces(config.interfaces);
  examine_session(config, board);
  examine_links(config, namespaces, board);
  if (config.role == Role::kSwitch) {
    for (const char* name : {"tc", "tcx", "qp", "probe"}) {
      board.set(name, v1::Source::OFF, "role: switch; only links are reported");
    }
    return board.all();
  }
  examine_tc(config, namespaces, board);
  set_tcx(board, config.attach, BpfDatapath::probe_permission(), BpfDatapath::probe_tcx());
  const auto qp = make_qp_source(config.qp_source)->poll(monotonic_ns());
  board.set("qp", qp.state, qp.reason);
  examine_probe(config, namespaces, board);
  return board.all();
}

}  // namespace te::agent
