// SPDX-License-Identifier: Apache-2.0
// te-bench-ingest [--json]: flow records that te-controller takes in for a second of CPU time, and its memory and
// planning time meanwhile. The real program serves simulated agents over TLS 1.3 on the loopback interface; probes are
// answered, so that paths become known and planning has work. All CPU time of the process counts. A table on
// stderr; with --json a list of {name, value, unit, compared_with, ratio} on stdout.
#include <CLI/CLI.hpp>
#include <algorithm>
#include <boost/asio/executor_work_guard.hpp>
#include <boost/asio/io_context.hpp>
#include <boost/asio/post.hpp>
#include <chrono>
#include <csignal>
#include <cstdio>
#include <cstdlib>
#include <filesystem>
#include <future>
#include <string>
#include <thread>
#include <type_traits>
#include <vector>

#include "tests/bench/ingest/agents.h"
#include "tests/bench/ingest/controller_process.h"

namespace te {
namespace {

using namespace std::chrono_literals;
using Clock = std::chrono::steady_clock;

constexpr auto kConnectLimit = 120s;
constexpr auto kExploreLimit = 10s;
constexpr double kKnownShare = 0.99;

struct Options {
  std::uint32_t agents = 2000;
  std::uint32_t flows = 100;
  std::uint32_t interval_ms = 500;
  int windows = 3;
  double window_s = 2;
  bool json = false;
};

double seconds(Clock::duration time) { return std::chrono::duration<double>(time).count(); }

double median(std::vector<double> values) {
  std::sort(values.begin(), values.end());
  return values[values.size() / 2];
}

/// The agents with the thread they run on.
class AgentThread {
 public:
  AgentThread(const BenchTraffic& traffic, test::CertificateAuthority& authority, std::uint16_t port,
              std::uint32_t interval_ms)
      : agents_(io_, traffic, authority, port, interval_ms), work_(io_.get_executor()), thread_([this] { io_.run(); }) {
    on_thread([this] {
      agents_.start();
      return 0;
    });
  }
  AgentThread(const AgentThread&) = delete;
  AgentThread& operator=(const AgentThread&) = delete;
  ~AgentThread() {
    io_.stop();
    thread_.join();
  }

  struct Progress {
    SimulatedAgents::Counters counters;
    std::uint64_t queued_bytes = 0;
  };
  Progress progress() {
    return on_thread([this] { return Progress{agents_.counters(), agents_.queued_bytes()}; });
  }
  void talk(SimulatedAgents::Talk talk) {
    on_thread([this, talk] {
      agents_.set_talk(talk);
      return 0;
    });
  }

 private:
  template <class Work>
  std::invoke_result_t<Work> on_thread(Work work) {
    std::promise<decltype(work())> done;
    boost::asio::post(io_, [&] { done.set_value(work()); });
    return done.get_future().get();
  }

  boost::asio::io_context io_{1};
  SimulatedAgents agents_;
  boost::asio::executor_work_guard<boost::asio::io_context::executor_type> work_;
  std::thread thread_;
};

/// One moment of both ends.
struct Moment {
  Clock::time_point when;
  CpuTime cpu;
  double records = 0;  ///< taken in by the controller: those sent, less what is still under way
};

Moment look(AgentThread& agents, const ControllerProcess& controller) {
  const auto progress = agents.progress();
  const auto under_way = static_cast<double>(progress.queued_bytes + controller.socket_bytes());
  const double each = static_cast<double>(progress.counters.bytes) / static_cast<double>(progress.counters.records);
  return {.when = Clock::now(),
          .cpu = controller.cpu(),
          .records = static_cast<double>(progress.counters.records) - under_way / each};
}

struct Figures {
  double all_per_core_s = 0;
  double records_per_s = 0;
  double busy_share = 0;
  double idle_share = 0;
  double plan_ms = 0;
  double idle_plan_ms = 0;
  double cycles_per_s = 0;  ///< of planning, over all windows
  double rss_mb = 0;
};

/// Until all agents are there and all flows known, and (as far as time allows) their paths.
Result<void> settle(AgentThread& agents, const ControllerProcess& controller, const BenchTraffic& traffic) {
  const auto begun = Clock::now();
  bool all = false;
  double connected_s = 0;
  while (true) {
    const auto status = controller.status();
    if (!status) return status.error();
    const auto counters = agents.progress().counters;
    if (counters.lost > 0) return Error{std::to_string(counters.lost) + " agents have no session"};
    if (!all) {
      all = status->agents == static_cast<int>(traffic.hosts()) && status->flows == static_cast<int>(traffic.flows());
      connected_s = seconds(Clock::now() - begun);
      if (!all && Clock::now() - begun > kConnectLimit)
        return Error{"only " + std::to_string(status->agents) + " agents and " + std::to_string(status->flows) +
                     " flows"};
    }
    const bool known = status->known_paths >= static_cast<int>(kKnownShare * traffic.flows());
    if (all && (known || seconds(Clock::now() - begun) - connected_s > seconds(kExploreLimit))) {
      std::fprintf(stderr,
                   "%d agents connected, %d flows after %.1f s; %d paths known (%llu probes, %llu connections tried "
                   "again) after %.1f s\n",
                   status->agents, status->flows, connected_s, status->known_paths,
                   static_cast<unsigned long long>(counters.probes), static_cast<unsigned long long>(counters.retries),
                   seconds(Clock::now() - begun));
      return {};
    }
    std::this_thread::sleep_for(500ms);
  }
}

/// What passed within a window, and the planner's time at its end.
struct Window {
  double records = 0;
  double thread_s = 0;
  double process_s = 0;
  double wall_s = 0;
  double plan_ms = 0;
};

Result<Window> watch(AgentThread& agents, const ControllerProcess& controller, SimulatedAgents::Talk talk,
                     const Options& options) {
  agents.talk(talk);
  std::this_thread::sleep_for(
      std::chrono::milliseconds(options.interval_ms));  // till each has changed its way of talking
  const Moment begin = look(agents, controller);
  std::this_thread::sleep_for(std::chrono::duration<double>(options.window_s));
  const Moment end = look(agents, controller);
  const auto status = controller.status();
  if (!status) return status.error();
  return Window{.records = end.records - begin.records,
                .thread_s = end.cpu.thread_s - begin.cpu.thread_s,
                .process_s = end.cpu.process_s - begin.cpu.process_s,
                .wall_s = seconds(end.when - begin.when),
                .plan_ms = status->plan_ms};
}

/// Windows of each kind in turns: what else runs on the machine meets both.
Result<Figures> measure(AgentThread& agents, const ControllerProcess& controller, const Options& options) {
  std::vector<double> all;
  std::vector<double> per_s;
  std::vector<double> busy_shares;
  std::vector<double> idle_shares;
  std::vector<double> plans_ms;
  std::vector<double> idle_plans_ms;
  const auto before = controller.status();
  if (!before) return before.error();
  const auto begun = Clock::now();
  for (int window = 0; window < options.windows; ++window) {
    const auto idle = watch(agents, controller, SimulatedAgents::Talk::kIdle, options);
    if (!idle) return idle.error();
    const auto busy = watch(agents, controller, SimulatedAgents::Talk::kUsual, options);
    if (!busy) return busy.error();
    std::fprintf(stderr, "main thread: idle %.0f %%, %.0f records/s %.0f %% of a core\n",
                 100 * idle->thread_s / idle->wall_s, busy->records / busy->wall_s,
                 100 * busy->thread_s / busy->wall_s);
    idle_shares.push_back(idle->thread_s / idle->wall_s);
    busy_shares.push_back(busy->thread_s / busy->wall_s);
    all.push_back(busy->records / busy->process_s);
    per_s.push_back(busy->records / busy->wall_s);
    plans_ms.push_back(busy->plan_ms);
    idle_plans_ms.push_back(idle->plan_ms);
  }
  const auto after = controller.status();
  if (!after) return after.error();
  const int cycles = after->plan_cycles - before->plan_cycles;
  if (cycles == 0) return Error{"no planning cycle was finished meanwhile"};
  const auto counters = agents.progress().counters;
  if (counters.lost > 0) return Error{std::to_string(counters.lost) + " agents lost their session"};
  if (counters.late + counters.refused > 0) {
    std::fprintf(stderr, "overloaded: %llu updates began late, %llu did not fit their queue\n",
                 static_cast<unsigned long long>(counters.late), static_cast<unsigned long long>(counters.refused));
  }
  return Figures{.all_per_core_s = median(all),
                 .records_per_s = median(per_s),
                 .busy_share = median(busy_shares),
                 .idle_share = median(idle_shares),
                 .plan_ms = median(plans_ms),
                 .idle_plan_ms = median(idle_plans_ms),
                 .cycles_per_s = cycles / seconds(Clock::now() - begun),
                 .rss_mb = controller.rss_mb()};
}

void print(const Figures& figures, const Options& options) {
  const double offered = 1e3 * options.agents * options.flows / options.interval_ms;
  std::fprintf(stderr, "%u agents with %u flows each, reports every %u ms; medians of %d windows\n", options.agents,
               options.flows, options.interval_ms, options.windows);
  std::fprintf(stderr, "%-48s %9.0f  (%.0f offered, %.0f taken in a second)\n",
               "records for a CPU second of the controller", figures.all_per_core_s, offered, figures.records_per_s);
  std::fprintf(stderr, "%-48s %9.0f %% of a core (while no flow changes %.0f %%)\n", "main thread",
               100 * figures.busy_share, 100 * figures.idle_share);
  std::fprintf(stderr, "%-48s %9.1f ms (while no flow changes %.1f ms)\n", "planning", figures.plan_ms,
               figures.idle_plan_ms);
  std::fprintf(stderr, "%-48s %9.2f in a second\n", "planning cycles finished", figures.cycles_per_s);
  std::fprintf(stderr, "%-48s %9.1f MB\n", "resident memory", figures.rss_mb);
}

void print_json(const Figures& figures) {
  const auto entry = [](const char* name, double value, const char* unit, const char* end) {
    std::printf("{\"name\": \"%s\", \"value\": %.3f, \"unit\": \"%s\", \"compared_with\": null, \"ratio\": null}%s",
                name, value, unit, end);
  };
  std::printf("[");
  entry("ingest_records_per_core_s", figures.all_per_core_s, "1/s", ", ");
  entry("controller_idle_cpu_percent", 100 * figures.idle_share, "%", ", ");
  entry("controller_rss_mb", figures.rss_mb, "MB", ", ");
  entry("controller_plan_cycles_per_s", figures.cycles_per_s, "1/s", ", ");
  entry("controller_plan_ms", figures.plan_ms, "ms", ", ");
  entry("controller_idle_plan_ms", figures.idle_plan_ms, "ms", "]\n");
}

Result<void> run(const Options& options, const std::filesystem::path& program) {
  test::CertificateAuthority authority;
  const BenchTraffic traffic(options.agents, options.flows);
  const auto controller = ControllerProcess::start({.program = program,
                                                    .directory = authority.folder(),
                                                    .tls = authority.issue("te-controller"),
                                                    .topology_yaml = traffic.topology_yaml(),
                                                    .report_interval_ms = options.interval_ms});
  if (!controller) return controller.error();
  AgentThread agents(traffic, authority, (*controller)->port(), options.interval_ms);
  if (auto settled = settle(agents, **controller, traffic); !settled) return settled;
  const auto figures = measure(agents, **controller, options);
  if (!figures) return figures.error();
  print(*figures, options);
  if (options.json) print_json(*figures);
  return {};
}

}  // namespace
}  // namespace te

int main(int argc, char** argv) {
  te::Options options;
  CLI::App app{"Cost of taking in the reports of many agents, by the real te-controller"};
  app.add_flag("--json", options.json, "Write the figures to stdout as JSON; the table goes to stderr");
  app.add_option("--agents", options.agents, "A multiple of 50")->check(CLI::Range(100, 10'000))->capture_default_str();
  app.add_option("--flows", options.flows, "That an agent reports; a multiple of 4")->capture_default_str();
  app.add_option("--interval-ms", options.interval_ms, "Between an agent's reports")->capture_default_str();
  app.add_option("--windows", options.windows, "Of measurement, of which the median counts")->capture_default_str();
  app.add_option("--window-s", options.window_s, "Length of a window")->capture_default_str();
  CLI11_PARSE(app, argc, argv);
  std::signal(SIGPIPE, SIG_IGN);
  // Thousands of small files with certificates: on a disk they would take longer than all the rest.
  if (std::filesystem::is_directory("/dev/shm")) ::setenv("TMPDIR", "/dev/shm", 0);
  const auto program = std::filesystem::canonical("/proc/self/exe").parent_path().parent_path() / "bin/te-controller";
  const auto done = te::run(options, program);
  if (done) return 0;
  std::fprintf(stderr, "te-bench-ingest: %s\n", done.error().message.c_str());
  return 1;
}
