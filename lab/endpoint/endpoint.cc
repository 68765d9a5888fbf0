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
#include <unordered_map>

#include "common/os/clock.h"
#include "common/os/file.h"
#include "lab/endpoint/plan.h"
#include "lab/endpoint/queue_pair.h"
#include "lab/endpoint/report.h"
#include "lab/endpoint/sockets.h"

namespace te::lab {
namespace {

constexpr std::int64_t kStatsIntervalNs = 100'000'000;
constexpr std::int64_t kTableIntervalNs = 1'000'000'000;
/// A NIC sends a little slower than the links carry, so that what queues does so in the NIC, where its QPs take turns,
/// and not in the fabric, where a longer way of the acknowledgements would mean a smaller share.
constexpr double kLineShare = 0.99;
/// Line time that a late turn may catch up on at once.
constexpr std::int64_t kMaxCatchUpNs = 10'000'000;
constexpr std::size_t kReceiveLimit = 512;
constexpr std::size_t kMaxWaiting = 256;

volatile std::sig_atomic_t g_drain = 0;

void on_signal(int) { g_drain = 1; }

/// Turns of the loop: often enough for the window, seldom enough for the CPU.
std::int64_t turn_ns(const EndpointPlan& plan) {
  const double packet_ns = (static_cast<double>(plan.path_mtu) + 58) * 8e9 / plan.rate_bps;
  return std::clamp(static_cast<std::int64_t>(1.5 * packet_ns), std::int64_t{200'000}, std::int64_t{1'000'000});
}

class Endpoint {
 public:
  Endpoint(EndpointPlan plan, NicSockets sockets, StatsFile stats)
      : plan_(std::move(plan)), sockets_(std::move(sockets)), stats_(std::move(stats)) {
    for (const QpPlan& qp : plan_.qps) {
      by_qpn_.emplace(qp.qpn, qps_.size());
      qps_.emplace_back(plan_, qp);
    }
  }

  Result<void> run();

 private:
  void turn(std::int64_t now_ns);
  void receive(std::int64_t now_ns);
  void queue_control();
  void queue_data(std::int64_t now_ns);
  void queue(roce::Packet packet);
  void flush();
  void report(std::int64_t now_ns, bool at_end);
  void wait_and_obey(std::int64_t until_ns);
  void obey(const std::string& line);
  void drain();
  static void say(const char* word) { (void)!::write(STDOUT_FILENO, word, std::char_traits<char>::length(word)); }

  EndpointPlan plan_;
  NicSockets sockets_;
  StatsFile stats_;
  std::vector<QueuePair> qps_;
  std::unordered_map<std::uint32_t, std::size_t> by_qpn_;
  std::vector<NicSockets::Outgoing> waiting_;  ///< built, not yet taken by the interface
  EndpointCounters counters_;
  std::string command_text_;
  double line_bps_ = kLineShare * plan_.rate_bps;
  const char* state_ = "INIT";
  std::size_t next_qp_ = 0;        ///< whose turn it is on the line
  std::int64_t line_free_ns_ = 0;  ///< when the last bit that was queued has left
  std::int64_t next_stats_ns_ = 0;
  std::int64_t next_table_ns_ = 0;
  std::uint16_t ip_id_ = 0;
  bool sending_ = false;
  bool draining_ = false;
  bool drained_said_ = false;
  bool ended_ = false;
};

void Endpoint::queue(roce::Packet packet) {
  // Identification 0 would be replaced by the kernel, after the ICRC was made over it.
  if (++ip_id_ == 0) ++ip_id_;
  packet.ip_id = ip_id_;
  line_free_ns_ += static_cast<std::int64_t>(static_cast<double>(wire_bytes(packet)) * 8e9 / line_bps_);
  waiting_.push_back({packet.destination, roce::build(packet)});
}

void Endpoint::receive(std::int64_t now_ns) {
  sockets_.receive(kReceiveLimit, [&](std::span<const std::uint8_t> bytes) {
    const auto packet = roce::parse(bytes);
    if (!packet) {
      ++counters_.malformed;
      return;
    }
    if (!roce::has_valid_icrc(bytes)) {
      ++counters_.icrc_errors;
      return;
    }
    const auto found = by_qpn_.find(packet->destination_qpn);
    if (found == by_qpn_.end() || qps_[found->second].plan().remote != packet->source) {
      ++counters_.unknown_qp;
      return;
    }
    qps_[found->second].on_packet(*packet, now_ns);
  });
}

void Endpoint::queue_control() {
  for (QueuePair& qp : qps_) {
    for (const roce::Packet& packet : qp.take_control()) queue(packet);
  }
}

void Endpoint::queue_data(std::int64_t now_ns) {
  // The line serves its QPs round robin, a packet each; it is busy until the last bit has left.
  while (line_free_ns_ <= now_ns && waiting_.size() < kMaxWaiting) {
    std::size_t tried = 0;
    while (tried < qps_.size() && !qps_[(next_qp_ + tried) % qps_.size()].has_data(now_ns)) ++tried;
    if (tried == qps_.size()) {
      line_free_ns_ = std::max(line_free_ns_, now_ns);
      return;
    }
    const std::size_t chosen = (next_qp_ + tried) % qps_.size();
    queue(qps_[chosen].take_data(now_ns));
    next_qp_ = (chosen + 1) % qps_.size();
  }
}

void Endpoint::flush() {
  const std::size_t sent = sockets_.send(waiting_);
  waiting_.erase(waiting_.begin(), waiting_.begin() + static_cast<std::ptrdiff_t>(sent));
}

void Endpoint::report(std::int64_t now_ns, bool at_end) {
  if (at_end || now_ns >= next_stats_ns_) {
    counters_.receive_drops = sockets_.receive_drops();
    stats_.append(stats_line(plan_.host, now_ns, qps_, counters_));
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
    const auto found = by_qpn_.find(qpn);
    if (found != by_qpn_.end()) qps_[found->second].set_flow_label(flow_label);
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
  receive(now_ns);
  line_free_ns_ = std::max(line_free_ns_, now_ns - kMaxCatchUpNs);
  queue_control();
  if (sending_) {
    for (QueuePair& qp : qps_) qp.on_time(now_ns);
    queue_data(now_ns);
  }
  flush();
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
  auto sockets = NicSockets::open(plan->interface, plan->address);
  if (!sockets) return std::move(sockets).error();
  auto stats = StatsFile::create(plan->stats_path);
  if (!stats) return std::move(stats).error();
  // Default slack of 50 us, added to each of a thousand turns a second, would be felt as a slower line.
  ::prctl(PR_SET_TIMERSLACK, 1000);
  // It stands for hardware: other programs on this machine must not slow it down. It sleeps in every turn.
  const sched_param urgency{.sched_priority = 1};
  if (::sched_setscheduler(0, SCHED_RR, &urgency) != 0) (void)::setpriority(PRIO_PROCESS, 0, -20);
  return Endpoint(std::move(*plan), std::move(*sockets), std::move(*stats)).run();
}

}  // namespace te::lab
