// SPDX-License-Identifier: Apache-2.0
#include "lab/endpoint/endpoint.h"

#include <fcntl.h>
#include <poll.h>
#include <sched.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <csignal>
#include <ctime>
#include <sstream>
#include <vector>

#include "common/os/clock.h"
#include "common/os/file.h"
#include "lab/endpoint/nic.h"
#include "lab/endpoint/plan.h"
#include "lab/endpoint/queue_pair.h"
#include "lab/endpoint/report.h"
#include "lab/endpoint/sockets.h"

namespace te::lab {
namespace {

constexpr std::int64_t kStatsIntervalNs = 100'000'000;
constexpr std::int64_t kTableIntervalNs = 1'000'000'000;

volatile std::sig_atomic_t g_drain = 0;

void on_signal(int) { g_drain = 1; }

/// Turns of the loop: often enough for the window, seldom enough for the CPU.
std::int64_t turn_ns(const EndpointPlan& plan) {
  const double packet_ns = (static_cast<double>(plan.path_mtu) + 58) * 8e9 / plan.rate_bps;
  return std::clamp(static_cast<std::int64_t>(1.5 * packet_ns), std::int64_t{200'000}, std::int64_t{1'000'000});
}

class Endpoint {
 public:
  /// `sockets`: of each NIC of the plan.
  Endpoint(EndpointPlan plan, std::vector<NicSockets> sockets, StatsFile stats)
      : plan_(std::move(plan)), stats_(std::move(stats)) {
    std::vector<std::vector<QueuePair*>> of_nic(sockets.size());
    qps_.reserve(plan_.qps.size());
    for (const QpPlan& qp : plan_.qps) {
      qps_.emplace_back(plan_, qp);
      of_nic[qp.nic].push_back(&qps_.back());
    }
    for (std::size_t nic = 0; nic < sockets.size(); ++nic) {
      nics_.emplace_back(std::move(sockets[nic]), std::move(of_nic[nic]), plan_.rate_bps);
    }
  }
  Endpoint(const Endpoint&) = delete;
  Endpoint& operator=(const Endpoint&) = delete;
  ~Endpoint() = default;

  Result<void> run();

 private:
  void turn(std::int64_t now_ns);
  void report(std::int64_t now_ns, bool at_end);
  void wait_and_obey(std::int64_t until_ns);
  void obey(const std::string& line);
  void drain();
  static void say(const char* word) { (void)!::write(STDOUT_FILENO, word, std::char_traits<char>::length(word)); }

  EndpointPlan plan_;
  StatsFile stats_;
  std::vector<QueuePair> qps_;  ///< of all NICs; never moved
  std::vector<Nic> nics_;
  std::string command_text_;
  const char* state_ = "INIT";
  std::int64_t next_stats_ns_ = 0;
  std::int64_t next_table_ns_ = 0;
  bool sending_ = false;
  bool draining_ = false;
  bool drained_said_ = false;
  bool ended_ = false;
};

void Endpoint::report(std::int64_t now_ns, bool at_end) {
  if (at_end || now_ns >= next_stats_ns_) {
    EndpointCounters total;
    for (Nic& nic : nics_) total += nic.counters();
    stats_.append(stats_line(plan_.host, now_ns, qps_, total));
    next_stats_ns_ = now_ns + kStatsIntervalNs;
  }
  if (at_end || now_ns >= next_table_ns_) {
    // A table that cannot be written is as good as one that is withheld.
    (void)replace_file(plan_.qp_table_path, at_end ? "[]\n" : qp_table_json(qps_, state_));
    next_table_ns_ = now_ns + kTableIntervalNs;
  }
}

void Endpoint::drain() {
  draining_ = true;
  for (QueuePair& qp : qps_) qp.stop();
}

void Endpoint::obey(const std::string& line) {
  std::istringstream words(line);
  std::string verb;
  words >> verb;
  if (verb == "go") {
    sending_ = true;
    state_ = "RTS";
    next_table_ns_ = 0;
  } else if (verb == "drain") {
    drain();
  } else if (verb == "label") {
    std::uint32_t qpn = 0;
    std::uint32_t flow_label = 0;
    words >> qpn >> flow_label;
    const auto found = std::ranges::find(qps_, qpn, [](const QueuePair& qp) { return qp.plan().qpn; });
    if (found != qps_.end()) found->set_flow_label(flow_label);
  }
}

void Endpoint::wait_and_obey(std::int64_t until_ns) {
  const std::int64_t left_ns = std::max<std::int64_t>(0, until_ns - monotonic_ns());
  const timespec timeout{left_ns / 1'000'000'000, left_ns % 1'000'000'000};
  pollfd control{STDIN_FILENO, POLLIN, 0};
  if (::ppoll(&control, 1, &timeout, nullptr) <= 0) return;
  std::array<char, 512> chunk{};
  const ssize_t got = ::read(STDIN_FILENO, chunk.data(), chunk.size());
  if (got < 0 && errno == EINTR) return;
  if (got <= 0) {
    ended_ = true;
    return;
  }
  command_text_.append(chunk.data(), static_cast<std::size_t>(got));
  for (auto end = command_text_.find('\n'); end != std::string::npos; end = command_text_.find('\n')) {
    obey(command_text_.substr(0, end));
    command_text_.erase(0, end + 1);
  }
}

void Endpoint::turn(std::int64_t now_ns) {
  for (Nic& nic : nics_) nic.receive(now_ns);
  if (sending_) {
    for (QueuePair& qp : qps_) qp.on_time(now_ns);
  }
  for (Nic& nic : nics_) nic.send(now_ns, sending_);
  report(now_ns, false);
  if (g_drain != 0 && !draining_) drain();
  if (draining_ && !drained_said_ && std::ranges::all_of(qps_, [](const QueuePair& qp) { return qp.is_drained(); })) {
    drained_said_ = true;
    say("drained\n");
  }
}

Result<void> Endpoint::run() {
  const std::int64_t period_ns = turn_ns(plan_);
  std::int64_t next_ns = monotonic_ns();
  report(next_ns, false);
  say("ready\n");
  while (!ended_) {
    next_ns += period_ns;
    wait_and_obey(next_ns);
    const std::int64_t now_ns = monotonic_ns();
    if (now_ns < next_ns) next_ns = now_ns;  // a command came
    turn(now_ns);
    // Turns that were missed are not made up for.
    next_ns = std::max(next_ns, now_ns - period_ns);
  }
  report(monotonic_ns(), true);
  return {};
}

void watch_signals() {
  struct sigaction action {};
  action.sa_handler = on_signal;
  ::sigaction(SIGTERM, &action, nullptr);
  // The parent decides on these; the terminal sends them to all of its processes.
  action.sa_handler = SIG_IGN;
  for (const int number : {SIGINT, SIGHUP, SIGPIPE}) ::sigaction(number, &action, nullptr);
}

}  // namespace

Result<void> run_endpoint(const std::string& plan_path) {
  watch_signals();
  auto plan = read_plan(plan_path);
  if (!plan) return std::move(plan).error();
  std::vector<NicSockets> sockets;
  for (const NicPlan& nic : plan->nics) {
    auto opened = NicSockets::open(nic.interface, nic.address);
    if (!opened) return std::move(opened).error();
    sockets.push_back(std::move(*opened));
  }
  auto stats = StatsFile::create(plan->stats_path);
  if (!stats) return std::move(stats).error();
  // Default slack of 50 us, added to each of a thousand turns a second, would be felt as a slower line.
  ::prctl(PR_SET_TIMERSLACK, 1000);
  // It stands for hardware: other programs on this machine must not slow it down. It sleeps in every turn.
  const sched_param urgency{.sched_priority = 1};
  if (::sched_setscheduler(0, SCHED_RR, &urgency) != 0) (void)::setpriority(PRIO_PROCESS, 0, -20);
  return Endpoint(std::move(*plan), std::move(sockets), std::move(*stats)).run();
}

}  // namespace te::lab
