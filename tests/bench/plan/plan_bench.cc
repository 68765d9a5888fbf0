// SPDX-License-Identifier: Apache-2.0
// te-bench-plan [--json]: how long a planning cycle for 10,000 elastic flows takes: the planner alone, and the whole
// cycle as the controller runs it; and one for 16 flows where a cable is slower than the others. A table on stderr;
// with --json a list of {name, value, unit, compared_with, ratio} on stdout.
#include <algorithm>
#include <chrono>
#include <cstdio>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "te-controller/traffic/planner.h"
#include "tests/bench/plan/cycle.h"
#include "tests/support/planning_instance.h"
#include "topology/builder.h"

namespace te::traffic {
namespace {

constexpr std::uint32_t kLeaves = 32;
constexpr std::uint32_t kHostsPerLeaf = 32;
constexpr std::uint32_t kHosts = kLeaves * kHostsPerLeaf;
constexpr std::size_t kFlows = 10'000;
constexpr int kRuns = 7;

using Ends = std::vector<std::pair<std::uint32_t, std::uint32_t>>;

/// Rings over all leaves, as collectives make them: each host sends to the same host of the next leaf, some QPs each.
Ends rings() {
  Ends ends;
  for (std::uint32_t i = 0; ends.size() < kFlows; i = (i + 1) % kHosts)
    ends.emplace_back(i + 1, (i + kHostsPerLeaf) % kHosts + 1);
  return ends;
}

double milliseconds(std::chrono::steady_clock::duration time) {
  return std::chrono::duration<double, std::milli>(time).count();
}

double median(std::vector<double> values) {
  std::sort(values.begin(), values.end());
  return values[values.size() / 2];
}

struct Figures {
  double plan_ms = 0;
  double rates_ms = 0;
  Plan plan;
};

/// Median over kRuns different placements of 16 flows in a ring over 2 leaves x 4 hosts x 4 spines, one cable at half
/// its rate: no placement meets the pigeonhole bound of every switch.
double measure_uneven() {
  const Fabric fabric =
      build_clos({.leaves = 2, .hosts_per_leaf = 4, .spines = 4, .host_bps = 100e6, .uplink_bps = 50e6});
  std::vector<double> plan_ms;
  for (int run = 0; run < kRuns; ++run) {
    TestRandom random(static_cast<std::uint64_t>(run) + 1);
    Instance instance(fabric, alternating_ring(4, 2), random);
    instance.narrow(fabric, "leaf1", "spine1", 0.5);
    const auto start = std::chrono::steady_clock::now();
    const Plan found = plan(fabric, instance.input);
    plan_ms.push_back(milliseconds(std::chrono::steady_clock::now() - start));
    if (found.slowest_goal_bps < found.slowest_bound_bps * (1 - 1e-9))
      std::fprintf(stderr, "the plan for uneven links does not meet its bound\n");
  }
  return median(plan_ms);
}

/// Medians over kRuns different placements.
Figures measure(const Fabric& fabric, const Ends& ends, std::size_t moves_per_cycle) {
  Figures figures;
  std::vector<double> plan_ms;
  std::vector<double> rates_ms;
  for (int run = 0; run < kRuns; ++run) {
    TestRandom random(static_cast<std::uint64_t>(run) + 1);
    Instance instance(fabric, ends, random);
    instance.input.limits.moves_per_cycle = moves_per_cycle;
    const auto start = std::chrono::steady_clock::now();
    figures.plan = plan(fabric, instance.input);
    const auto planned = std::chrono::steady_clock::now();
    const auto rates = rates_at(fabric, instance.input, after_moves(instance.input, figures.plan, 0));
    rates_ms.push_back(milliseconds(std::chrono::steady_clock::now() - planned));
    plan_ms.push_back(milliseconds(planned - start));
    if (rates != figures.plan.rate_now_bps) std::fprintf(stderr, "the plan's rates are not the load model's\n");
  }
  figures.plan_ms = median(plan_ms);
  figures.rates_ms = median(rates_ms);
  return figures;
}

void print(const char* what, const Figures& figures) {
  std::fprintf(stderr,
               "%-34s %8.1f ms  (max-min alone %5.1f ms)  slowest %6.2f -> %6.2f Gbit/s, bound %6.2f, %zu moves\n",
               what, figures.plan_ms, figures.rates_ms, figures.plan.slowest_now_bps / 1e9,
               figures.plan.slowest_goal_bps / 1e9, figures.plan.slowest_bound_bps / 1e9, figures.plan.moves_to_goal);
}

int run(bool json) {
  const Fabric fabric = build_clos(
      {.leaves = kLeaves, .hosts_per_leaf = kHostsPerLeaf, .spines = 16, .host_bps = 400e9, .uplink_bps = 800e9});
  TestRandom random(1);
  std::fprintf(stderr, "10,000 elastic flows, 1,024 hosts, 32 leaves x 16 spines, 16 paths a flow; medians of %d\n",
               kRuns);
  print("rings, all moves in one cycle", measure(fabric, rings(), kFlows));
  print("rings, 16 moves a cycle", measure(fabric, rings(), 16));
  print("random pairs, all moves", measure(fabric, random_pairs(kHosts, kFlows, random), kFlows));
  const double uneven_ms = measure_uneven();
  std::fprintf(stderr, "%-34s %8.1f ms\n", "16 flows, 4 spines, one cable slow", uneven_ms);
  const CycleFigures cycle = measure_cycle(kRuns);
  std::fprintf(stderr, "%-34s %8.1f ms  (snapshot %.1f ms, planner %.1f ms)  %zu flows, %zu moves to the goal\n",
               "whole cycle of the controller", cycle.total_ms, cycle.snapshot_ms, cycle.plan_ms, cycle.flows,
               cycle.moves);
  if (json) {
    std::printf(
        "[{\"name\": \"plan_cycle_10k_ms\", \"value\": %.3f, \"unit\": \"ms\", \"compared_with\": null, \"ratio\": "
        "null}, {\"name\": \"plan_cycle_uneven_16_ms\", \"value\": %.3f, \"unit\": \"ms\", \"compared_with\": null, "
        "\"ratio\": null}]\n",
        cycle.total_ms, uneven_ms);
  }
  return 0;
}

}  // namespace
}  // namespace te::traffic

int main(int argc, char** argv) {
  const bool json = argc == 2 && std::string_view(argv[1]) == "--json";
  if (argc > 1 && !json) {
    std::fprintf(stderr, "usage: te-bench-plan [--json]\n");
    return 2;
  }
  return te::traffic::run(json);
}
