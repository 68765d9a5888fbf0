// SPDX-License-Identifier: Apache-2.0
// What the tc programs cost in BPF_PROG_TEST_RUN against an empty tc program, in interleaved runs. Fails when a packet
// that should have been counted or steered was not.
#include <bpf/bpf.h>
#include <bpf/libbpf.h>

#include <CLI/CLI.hpp>
#include <algorithm>
#include <array>
#include <cstdio>
#include <cstring>
#include <ctime>
#include <memory>
#include <span>
#include <string>
#include <vector>

#include "bench.skel.h"
#include "common/roce/icrc.h"
#include "common/roce/packet.h"
#include "host-agent/io/bpf_convert.h"
#include "host-agent/io/bpf_icrc_table.h"
#include "host-agent/io/bpf_messages.h"

namespace te {
namespace {

using Bytes = std::vector<std::uint8_t>;

constexpr std::size_t kEthernetBytes = 14;
constexpr std::size_t kPayloadBytes = 1024;
constexpr std::uint16_t kOldPort = 0xC111;
constexpr std::uint16_t kNewPort = 0xE0A5;
constexpr std::uint32_t kLoopbackIfindex = 1;

struct Options {
  int rounds = 9;
  int repeat = 500'000;
  bool json = false;
  bool require_targets = false;
};

struct Figure {
  std::string name;
  double ratio = 0;
  double nanoseconds = 0;
  double empty_nanoseconds = 0;
  double target = 0;  // 0: only shown
};

struct DestroyBench {
  void operator()(bench* skeleton) const { bench::destroy(skeleton); }
};

roce::Packet packet_of_family(bool v6) {
  static const Bytes kPayload(kPayloadBytes, 0x5A);
  roce::Packet packet;
  packet.source = IpAddress::parse(v6 ? "fd00::1" : "10.0.0.1").value();
  packet.destination = IpAddress::parse(v6 ? "fd00::2" : "10.0.0.2").value();
  packet.source_port = kOldPort;
  packet.traffic_class = 2;
  packet.opcode = roce::Opcode::kWriteMiddle;
  packet.destination_qpn = 0x123456;
  packet.payload = kPayload;
  return packet;
}

Bytes frame_of(const Bytes& ip) {
  Bytes frame{0x02, 0, 0, 0, 0, 2, 0x02, 0, 0, 0, 0, 1};
  const bool v6 = ip[0] >> 4 == 6;
  frame.push_back(v6 ? 0x86 : 0x08);
  frame.push_back(v6 ? 0xDD : 0x00);
  frame.insert(frame.end(), ip.begin(), ip.end());
  return frame;
}

std::int64_t thread_cpu_ns() {
  timespec now{};
  ::clock_gettime(CLOCK_THREAD_CPUTIME_ID, &now);
  return std::int64_t{now.tv_sec} * 1'000'000'000 + now.tv_nsec;
}

double median(std::vector<double> values) {
  const auto middle = values.begin() + static_cast<std::ptrdiff_t>(values.size() / 2);
  std::nth_element(values.begin(), middle, values.end());
  return *middle;
}

/// One family's programs, loaded, with a flow in the map.
class Subject {
 public:
  static Result<Subject> load(bool v6) {
    const agent::BpfMessages messages;
    Subject subject(v6);
    subject.skeleton_.reset(bench::open());
    if (!subject.skeleton_) return messages.error("open the bench programs", errno);
    subject.describe_frame();
    if (bench::load(subject.skeleton_.get()) != 0) return messages.error("load the bench programs", errno);
    const auto rows = agent::make_icrc_rows();
    for (std::uint32_t index = 0; index < rows.size(); ++index) {
      if (bpf_map_update_elem(bpf_map__fd(subject.skeleton_->maps.te_icrc_rows), &index, &rows[index], BPF_ANY) != 0) {
        return messages.error("fill the ICRC table", errno);
      }
    }
    return subject;
  }

  /// Nanoseconds of CPU time of one packet.
  Result<double> run_empty(int repeat) { return run(skeleton_->progs.bench_empty, roce_frame_, repeat); }
  /// Of the dearer of a TCP packet and a UDP packet to another port.
  Result<double> run_other(int repeat) {
    double worst = 0;
    for (const Bytes& frame : other_frames_) {
      auto cost = run(skeleton_->progs.bench_other, frame, repeat);
      if (!cost) return cost;
      worst = std::max(worst, *cost);
    }
    return worst;
  }
  Result<double> run_count(int repeat) {
    if (auto reset = reset_flow(0); !reset) return std::move(reset).error();
    auto cost = run(skeleton_->progs.bench_count, roce_frame_, repeat);
    if (!cost) return cost;
    const TeFlow flow = read_flow();
    if (flow.packets != static_cast<std::uint64_t>(repeat) || flow.psn_gaps + flow.duplicate_packets != 0) {
      return Error{"counted " + std::to_string(flow.packets) + " of " + std::to_string(repeat) + " packets in order"};
    }
    return cost;
  }
  Result<double> run_steer(int repeat) {
    if (auto reset = reset_flow(kNewPort); !reset) return std::move(reset).error();
    skeleton_->bss->repaired_packets = 0;
    auto cost = run(skeleton_->progs.bench_steer, roce_frame_, repeat);
    if (!cost) return cost;
    const std::uint64_t steered = read_flow().steered_packets;
    const std::uint64_t repaired = skeleton_->bss->repaired_packets;
    if (steered != static_cast<std::uint64_t>(repeat) || repaired != steered) {
      return Error{"steered " + std::to_string(steered) + " and repaired " + std::to_string(repaired) + " of " +
                   std::to_string(repeat) + " packets"};
    }
    if (!last_icrc_is_right()) return Error{"the last packet's ICRC was not repaired right"};
    return cost;
  }

 private:
  explicit Subject(bool v6) : v6_(v6), udp_at_(kEthernetBytes + (v6 ? 40 : 20)) {
    roce_frame_ = frame_of(roce::build(packet_of_family(v6)));
    Bytes tcp = roce_frame_;
    tcp.at(v6 ? kEthernetBytes + 6 : kEthernetBytes + 9) = 6;
    Bytes other_port = roce_frame_;
    other_port.at(udp_at_ + 2) = 0;
    other_frames_ = {tcp, other_port};
  }

  void describe_frame() {
    auto* constants = skeleton_->rodata;
    constants->udp_offset = static_cast<std::uint32_t>(udp_at_);
    constants->icrc_offset = static_cast<std::uint32_t>(roce_frame_.size() - 4);
    std::uint32_t icrc = 0;
    std::memcpy(&icrc, roce_frame_.data() + roce_frame_.size() - 4, sizeof icrc);
    constants->old_icrc = icrc;
    std::uint16_t port = 0;
    std::memcpy(&port, roce_frame_.data() + udp_at_, sizeof port);
    constants->old_port = port;
  }

  [[nodiscard]] int flow_map() const {
    return bpf_map__fd(v6_ ? skeleton_->maps.te_flows_v6 : skeleton_->maps.te_flows_v4);
  }
  template <class Access>
  auto with_key(Access access) const {
    const roce::Packet packet = packet_of_family(v6_);
    const agent::FlowKey key{.ifindex = kLoopbackIfindex,
                             .source = packet.source,
                             .destination = packet.destination,
                             .destination_qpn = packet.destination_qpn};
    if (v6_) {
      const TeFlowKeyV6 kernel_key = agent::to_kernel_v6(key);
      return access(static_cast<const void*>(&kernel_key));
    }
    const TeFlowKeyV4 kernel_key = agent::to_kernel_v4(key);
    return access(static_cast<const void*>(&kernel_key));
  }
  Result<void> reset_flow(std::uint16_t steer_port) {
    TeFlow flow{};
    flow.source_port = kOldPort;
    flow.steer_port = steer_port;
    const bool done =
        with_key([&](const void* key) { return bpf_map_update_elem(flow_map(), key, &flow, BPF_ANY) == 0; });
    if (!done) return Error{"cannot set up the flow"};
    return {};
  }
  [[nodiscard]] TeFlow read_flow() const {
    TeFlow flow{};
    with_key([&](const void* key) { return bpf_map_lookup_elem(flow_map(), key, &flow); });
    return flow;
  }

  Result<double> run(const bpf_program* program, const Bytes& frame, int repeat) {
    last_frame_.resize(frame.size());
    bpf_test_run_opts options{};
    options.sz = sizeof options;
    options.data_in = frame.data();
    options.data_size_in = static_cast<std::uint32_t>(frame.size());
    options.data_out = last_frame_.data();
    options.data_size_out = static_cast<std::uint32_t>(last_frame_.size());
    options.repeat = repeat;
    const std::int64_t start_ns = thread_cpu_ns();
    if (bpf_prog_test_run_opts(bpf_program__fd(program), &options) != 0) {
      return Error{std::string("run ") + bpf_program__name(program) + ": " + std::strerror(errno)};
    }
    return static_cast<double>(thread_cpu_ns() - start_ns) / repeat;
  }

  /// The PSN was advanced under the old ICRC, so the ICRC is right when it changed by what the port change takes.
  [[nodiscard]] bool last_icrc_is_right() const {
    std::uint32_t icrc = 0;
    std::memcpy(&icrc, last_frame_.data() + last_frame_.size() - 4, sizeof icrc);
    std::uint16_t port = 0;
    std::memcpy(&port, last_frame_.data() + udp_at_, sizeof port);
    const auto changed = static_cast<std::uint16_t>(port ^ skeleton_->rodata->old_port);
    const auto bytes_after = static_cast<std::uint32_t>(last_frame_.size() - udp_at_ - 2 - 4);
    return port != skeleton_->rodata->old_port &&
           icrc == (skeleton_->rodata->old_icrc ^ roce::icrc_delta(changed, bytes_after));
  }

  bool v6_;
  std::size_t udp_at_;
  Bytes roce_frame_;
  std::array<Bytes, 2> other_frames_;
  Bytes last_frame_;
  std::unique_ptr<bench, DestroyBench> skeleton_;
};

struct Measure {
  const char* name;
  Result<double> (Subject::*run)(int);
  double target;
};

constexpr std::array kMeasures{
    Measure{"bpf_count_vs_empty", &Subject::run_count, 3.0},
    Measure{"bpf_steer_vs_empty", &Subject::run_steer, 5.5},
    Measure{"bpf_other_vs_empty", &Subject::run_other, 1.3},
};

/// Each round runs the empty program and every other one; ratios are taken within a round.
Result<std::vector<Figure>> measure(const Options& options, bool v6) {
  auto subject = Subject::load(v6);
  if (!subject) return std::move(subject).error();
  std::array<std::vector<double>, kMeasures.size()> costs;
  std::array<std::vector<double>, kMeasures.size()> ratios;
  std::vector<double> empty_costs;
  for (int round = 0; round < options.rounds; ++round) {
    const auto empty = subject->run_empty(options.repeat);
    if (!empty) return empty.error();
    empty_costs.push_back(*empty);
    for (std::size_t i = 0; i < kMeasures.size(); ++i) {
      const auto cost = ((*subject).*kMeasures[i].run)(options.repeat);
      if (!cost) return with_context(cost.error(), kMeasures[i].name);
      costs[i].push_back(*cost);
      ratios[i].push_back(*cost / *empty);
    }
  }
  std::vector<Figure> figures;
  for (std::size_t i = 0; i < kMeasures.size(); ++i) {
    figures.push_back({.name = std::string(kMeasures[i].name) + (v6 ? "_ipv6" : ""),
                       .ratio = median(ratios[i]),
                       .nanoseconds = median(costs[i]),
                       .empty_nanoseconds = median(empty_costs),
                       .target = v6 ? 0 : kMeasures[i].target});
  }
  return figures;
}

void print_table(const std::vector<Figure>& figures) {
  std::fprintf(stderr, "%-28s %10s %10s %8s %8s\n", "", "ns/packet", "empty ns", "ratio", "target");
  for (const Figure& figure : figures) {
    std::fprintf(stderr, "%-28s %10.1f %10.1f %8.2f ", figure.name.c_str(), figure.nanoseconds,
                 figure.empty_nanoseconds, figure.ratio);
    figure.target > 0 ? std::fprintf(stderr, "%8.1f\n", figure.target) : std::fprintf(stderr, "%8s\n", "-");
  }
}

void print_json(const std::vector<Figure>& figures) {
  std::printf("[");
  for (std::size_t i = 0; i < figures.size(); ++i) {
    std::printf(
        "%s\n  {\"name\": \"%s\", \"value\": %.3f, \"unit\": \"1\", \"compared_with\": \"empty tc program\", "
        "\"ratio\": %.3f}",
        i == 0 ? "" : ",", figures[i].name.c_str(), figures[i].ratio, figures[i].ratio);
  }
  std::printf("\n]\n");
}

int run(const Options& options) {
  std::vector<Figure> figures;
  for (const bool v6 : {false, true}) {
    auto measured = measure(options, v6);
    if (!measured) {
      std::fprintf(stderr, "te-bench-bpf: %s\n", measured.error().message.c_str());
      return 1;
    }
    figures.insert(figures.end(), measured->begin(), measured->end());
  }
  print_table(figures);
  if (options.json) print_json(figures);
  const bool missed = std::any_of(figures.begin(), figures.end(), [](const Figure& figure) {
    return figure.target > 0 && figure.ratio > figure.target;
  });
  return options.require_targets && missed ? 2 : 0;
}

}  // namespace
}  // namespace te

int main(int argc, char** argv) {
  te::Options options;
  CLI::App app{"Cost of the tc programs against an empty one, by BPF_PROG_TEST_RUN (needs root)"};
  app.add_flag("--json", options.json, "write the figures to stdout as JSON; the table goes to stderr");
  app.add_option("--rounds", options.rounds, "interleaved runs, of which the median counts")
      ->check(CLI::Range(5, 1000));
  app.add_option("--repeat", options.repeat, "packets a run")->check(CLI::Range(1000, 100'000'000));
  app.add_flag("--require-targets", options.require_targets, "exit with 2 when a ratio is above its target");
  CLI11_PARSE(app, argc, argv);
  return te::run(options);
}
