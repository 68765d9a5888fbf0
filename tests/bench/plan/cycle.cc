// SPDX-License-Identifier: Apache-2.0
#include "tests/bench/plan/cycle.h"

#include <algorithm>
#include <chrono>
#include <string>
#include <vector>

#include "te-controller/engine/engine.h"
#include "tests/support/planning_instance.h"
#include "topology/builder.h"

namespace te {
namespace {

constexpr std::uint32_t kLeaves = 32;
constexpr std::uint32_t kHostsPerLeaf = 32;
constexpr std::uint32_t kHosts = kLeaves * kHostsPerLeaf;
constexpr std::uint32_t kFlows = 10'000;
constexpr std::uint16_t kPortsPerPath = 2;
constexpr std::int64_t kReportedNs = 1'000'000'000;
constexpr std::int64_t kIntervalNs = 1'000'000'000;

using Clock = std::chrono::steady_clock;

double milliseconds(Clock::duration time) { return std::chrono::duration<double, std::milli>(time).count(); }

double median(std::vector<double> values) {
  std::sort(values.begin(), values.end());
  return values[values.size() / 2];
}

IpAddress address_of(std::uint32_t host) {
  return IpAddress::v4({10, static_cast<std::uint8_t>(host / kHostsPerLeaf + 1),
                        static_cast<std::uint8_t>(host % kHostsPerLeaf + 1), 2});
}

NodeId node_of(const Fabric& fabric, std::uint32_t host) {
  return fabric.port(fabric.find_address(address_of(host)).value()).node;
}

v1::Hello hello_of(const std::string& node) {
  v1::Hello hello;
  hello.set_protocol_version(1);
  hello.set_node(node);
  v1::Source& source = *hello.add_sources();
  source.set_name("tc");
  source.set_state(v1::Source::ON);
  return hello;
}

/// Ports 0xC000.. of a pair lead onto its paths in turn.
void teach(Engine& engine, const AddressPair& pair) {
  const auto from = engine.fabric().find_address(pair.source);
  const auto to = engine.fabric().find_address(pair.destination);
  const PathSet set = engine.routing().paths(from.value(), to.value());
  for (std::uint16_t n = 0; n < set.paths.size() * kPortsPerPath; ++n) {
    const Path& path = set.paths[n % set.paths.size()];
    for (const LinkId link : path.links) {
      const NodeId at = engine.fabric().link(link).from;
      if (engine.routing().next_links(at, to.value()).size() < 2) continue;
      (void)engine.knowledge().learn(pair, static_cast<std::uint16_t>(kFirstRocePort + n), Hop{.at = at, .link = link},
                                     kReportedNs);
    }
  }
}

/// All hosts connected, all flows reported, all paths known.
void populate(Engine& engine) {
  traffic::TestRandom random(1);
  std::vector<v1::AgentMessage> reports(kHosts);
  for (std::uint32_t n = 0; n < kFlows; ++n) {
    const std::uint32_t sender = n % kHosts;
    const AddressPair pair{address_of(sender), address_of((sender + kHostsPerLeaf) % kHosts)};
    if (n < kHosts) teach(engine, pair);
    v1::FlowReport& one = *reports[sender].mutable_flows()->add_flows();
    one.mutable_key()->set_ifindex(2);
    one.mutable_key()->set_source(pair.source.to_bytes());
    one.mutable_key()->set_destination(pair.destination.to_bytes());
    one.mutable_key()->set_destination_qpn(0x100 + n);
    one.set_direction(v1::EGRESS);
    const std::uint32_t port = kFirstRocePort + random.below(16);
    one.set_source_port(port);
    one.set_wire_port(port);
    one.set_rate_bps(1e9);
    one.set_payload_bps(0.98e9);
    one.set_packets(1000);
  }
  for (std::uint32_t host = 0; host < kHosts; ++host) {
    const std::string& name = engine.fabric().node(node_of(engine.fabric(), host)).name;
    TE_CHECK(engine.on_hello(name, hello_of(name), kReportedNs).accepted(), "agent refused");
    reports[host].mutable_flows()->set_interval_ms(500);
    reports[host].mutable_flows()->set_complete(true);
    TE_CHECK(engine.on_message(name, reports[host], kReportedNs).ok(), "report refused");
  }
}

}  // namespace

CycleFigures measure_cycle(int runs) {
  Engine engine(
      build_clos(
          {.leaves = kLeaves, .hosts_per_leaf = kHostsPerLeaf, .spines = 16, .host_bps = 400e9, .uplink_bps = 800e9}),
      EngineOptions{}, kReportedNs, 0);
  populate(engine);
  CycleFigures figures;
  std::vector<double> snapshot_ms;
  std::vector<double> plan_ms;
  std::vector<double> total_ms;
  for (int run = 0; run < runs; ++run) {
    const std::int64_t now_ns = kReportedNs + (run + 1) * kIntervalNs;
    const auto start = Clock::now();
    const auto job = engine.begin_cycle(now_ns);
    TE_CHECK(job != nullptr, "no planning cycle was due");
    const auto taken = Clock::now();
    traffic::Plan plan = traffic::plan(*job->fabric, job->input);
    const auto planned = Clock::now();
    figures.flows = job->flows.size();
    figures.moves = plan.moves_to_goal;
    engine.finish_cycle({.job = job, .plan = std::move(plan), .computed_ms = 0}, now_ns);
    total_ms.push_back(milliseconds(Clock::now() - start));
    snapshot_ms.push_back(milliseconds(taken - start));
    plan_ms.push_back(milliseconds(planned - taken));
  }
  figures.snapshot_ms = median(snapshot_ms);
  figures.plan_ms = median(plan_ms);
  figures.total_ms = median(total_ms);
  return figures;
}

}  // namespace te
