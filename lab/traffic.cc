// SPDX-License-Identifier: Apache-2.0
#include "lab/traffic.h"

#include <fcntl.h>
#include <fmt/format.h>
#include <poll.h>
#include <sys/prctl.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <csignal>
#include <cstdio>
#include <cstdlib>

#include "common/os/clock.h"
#include "common/os/file.h"
#include "common/os/unique_fd.h"
#include "lab/netns.h"
#include "lab/process.h"
#include "lab/state.h"

namespace te::lab {
namespace {

constexpr std::int64_t kReadyTimeoutNs = 10'000'000'000;
constexpr std::int64_t kDrainTimeoutNs = 4'000'000'000;
constexpr int kPollStepMs = 20;
constexpr const char* kTrafficProcess = "traffic";

volatile std::sig_atomic_t g_stop = 0;

void on_signal(int) { g_stop = 1; }

void watch_signals() {
  struct sigaction action {};
  action.sa_handler = on_signal;
  for (const int number : {SIGINT, SIGTERM, SIGHUP}) ::sigaction(number, &action, nullptr);
  action.sa_handler = SIG_IGN;
  ::sigaction(SIGPIPE, &action, nullptr);
}

/// A running endpoint and the two pipes to it. Closing the first ends it.
class EndpointProcess {
 public:
  static Result<EndpointProcess> start(const std::string& netns, const std::string& plan_path);
  EndpointProcess(EndpointProcess&& other) noexcept
      : pid_(std::exchange(other.pid_, 0)),
        commands_(std::move(other.commands_)),
        words_(std::move(other.words_)),
        said_(std::move(other.said_)) {}
  EndpointProcess& operator=(EndpointProcess&&) = delete;
  EndpointProcess(const EndpointProcess&) = delete;
  EndpointProcess& operator=(const EndpointProcess&) = delete;
  ~EndpointProcess() { (void)finish(); }

  void tell(const std::string& line) const { (void)!::write(commands_.get(), line.data(), line.size()); }
  /// Whether the endpoint has said `word`.
  bool has_said(const std::string& word) {
    std::array<char, 64> chunk{};
    const ssize_t got = ::read(words_.get(), chunk.data(), chunk.size());
    if (got > 0) said_.append(chunk.data(), static_cast<std::size_t>(got));
    return said_.find(word + "\n") != std::string::npos;
  }
  /// Closes the command pipe and waits for the end; false when it failed.
  bool finish() {
    commands_.reset();
    if (pid_ == 0) return true;
    int status = 0;
    while (::waitpid(pid_, &status, 0) < 0 && errno == EINTR) {
    }
    pid_ = 0;
    return WIFEXITED(status) && WEXITSTATUS(status) == 0;
  }
  void kill() const {
    if (pid_ > 0) ::kill(pid_, SIGKILL);
  }
  [[nodiscard]] bool has_ended() const {
    siginfo_t info{};
    return ::waitid(P_PID, static_cast<id_t>(pid_), &info, WEXITED | WNOHANG | WNOWAIT) == 0 && info.si_pid == pid_;
  }
  [[nodiscard]] pid_t pid() const { return pid_; }

 private:
  EndpointProcess(pid_t pid, UniqueFd commands, UniqueFd words)
      : pid_(pid), commands_(std::move(commands)), words_(std::move(words)) {}
  pid_t pid_;
  UniqueFd commands_;
  UniqueFd words_;
  std::string said_;
};

[[noreturn]] void become_endpoint(const std::string& netns, const std::string& plan_path, int commands, int words,
                                  pid_t parent) {
  ::prctl(PR_SET_PDEATHSIG, SIGKILL);
  if (::getppid() != parent) ::_exit(1);
  const auto entered = enter_netns(netns);
  if (!entered) {
    std::fprintf(stderr, "te-lab: %s\n", entered.error().message.c_str());
    ::_exit(1);
  }
  ::dup2(commands, STDIN_FILENO);
  ::dup2(words, STDOUT_FILENO);
  ::execl("/proc/self/exe", "te-lab", "endpoint", "--plan", plan_path.c_str(), nullptr);
  std::fprintf(stderr, "te-lab: %s\n", errno_error("start an endpoint").message.c_str());
  ::_exit(1);
}

Result<EndpointProcess> EndpointProcess::start(const std::string& netns, const std::string& plan_path) {
  std::array<int, 2> down{};
  std::array<int, 2> up{};
  if (::pipe2(down.data(), O_CLOEXEC) != 0) return errno_error("pipe");
  const UniqueFd commands_end(down[0]);
  UniqueFd commands(down[1]);
  if (::pipe2(up.data(), O_CLOEXEC) != 0) return errno_error("pipe");
  UniqueFd words(up[0]);
  const UniqueFd words_end(up[1]);
  ::fcntl(words.get(), F_SETFL, O_NONBLOCK);
  const pid_t parent = ::getpid();
  const pid_t pid = ::fork();
  if (pid < 0) return errno_error("fork");
  if (pid == 0) become_endpoint(netns, plan_path, commands_end.get(), words_end.get(), parent);
  return EndpointProcess(pid, std::move(commands), std::move(words));
}

/// All endpoints of a run.
class Traffic {
 public:
  Traffic(std::string id, Fabric fabric, std::vector<FlowPlan> flows)
      : id_(std::move(id)), fabric_(std::move(fabric)), flows_(std::move(flows)) {}
  ~Traffic() {
    endpoints_.clear();
    for (const Node& node : fabric_.nodes) forget_process(id_, "endpoint-" + node.name);
    forget_process(id_, kTrafficProcess);
  }
  Traffic(const Traffic&) = delete;
  Traffic& operator=(const Traffic&) = delete;

  Result<void> start(const std::vector<EndpointPlan>& plans);
  Result<void> run(double seconds, std::vector<Relabel> relabels);
  Result<void> finish();

 private:
  bool wait_until_all_said(const std::string& word, std::int64_t timeout_ns);
  [[nodiscard]] bool any_ended() const {
    return std::ranges::any_of(endpoints_, [](const EndpointProcess& endpoint) { return endpoint.has_ended(); });
  }
  void relabel(const Relabel& change) const {
    const FlowPlan& flow = flows_[change.flow];
    endpoints_[flow.source].tell(fmt::format("label {} {}\n", flow.source_qpn, change.flow_label));
  }

  std::string id_;
  Fabric fabric_;
  std::vector<FlowPlan> flows_;
  std::vector<EndpointProcess> endpoints_;
};

bool Traffic::wait_until_all_said(const std::string& word, std::int64_t timeout_ns) {
  const std::int64_t end_ns = monotonic_ns() + timeout_ns;
  while (monotonic_ns() < end_ns && !any_ended()) {
    if (std::ranges::all_of(endpoints_, [&](EndpointProcess& endpoint) { return endpoint.has_said(word); }))
      return true;
    ::poll(nullptr, 0, kPollStepMs);
  }
  return false;
}

Result<void> Traffic::start(const std::vector<EndpointPlan>& plans) {
  for (std::size_t host = 0; host < plans.size(); ++host) {
    const std::string path = state_directory(id_) + "/plan/" + plans[host].host + ".json";
    auto written = replace_file(path, plan_json(plans[host]));
    if (!written) return written;
    auto endpoint = EndpointProcess::start(fabric_.nodes[host].fabric_netns, path);
    if (!endpoint) return std::move(endpoint).error();
    if (auto process = identify(endpoint->pid())) {
      auto noted = note_process(id_, "endpoint-" + plans[host].host, *process);
      if (!noted) return noted;
    }
    endpoints_.push_back(std::move(*endpoint));
  }
  if (!wait_until_all_said("ready", kReadyTimeoutNs)) return Error{"the endpoints did not start"};
  for (const EndpointProcess& endpoint : endpoints_) endpoint.tell("go\n");
  return {};
}

Result<void> Traffic::run(double seconds, std::vector<Relabel> relabels) {
  std::ranges::sort(relabels, {}, &Relabel::after_ms);
  auto next = relabels.begin();
  const std::int64_t begin_ns = monotonic_ns();
  const auto length_ns = static_cast<std::int64_t>(seconds * 1e9);
  while (g_stop == 0 && (seconds <= 0 || monotonic_ns() - begin_ns < length_ns)) {
    for (; next != relabels.end() && monotonic_ns() - begin_ns >= next->after_ms * 1'000'000; ++next) relabel(*next);
    ::poll(nullptr, 0, kPollStepMs);
    if (any_ended()) return Error{"an endpoint ended by itself"};
  }
  return {};
}

Result<void> Traffic::finish() {
  for (const EndpointProcess& endpoint : endpoints_) endpoint.tell("drain\n");
  const bool drained = wait_until_all_said("drained", kDrainTimeoutNs);
  bool clean = true;
  for (EndpointProcess& endpoint : endpoints_) {
    if (!endpoint.has_said("drained")) endpoint.kill();  // one that hangs must not hang us
  }
  for (EndpointProcess& endpoint : endpoints_) clean = endpoint.finish() && clean;
  if (!drained) return Error{"some messages were not acknowledged in time"};
  if (!clean) return Error{"an endpoint failed"};
  return {};
}

Result<void> note_self(const std::string& id) {
  for (const ProcessId& process : noted_processes(id)) {
    auto other = read_file(state_directory(id) + "/pids/" + kTrafficProcess);
    if (other && other->starts_with(fmt::format("{} ", process.pid))) {
      return Error{fmt::format("lab {} has traffic already (process {})", id, process.pid)};
    }
  }
  auto self = identify(::getpid());
  if (!self) return std::move(self).error();
  return note_process(id, kTrafficProcess, *self);
}

}  // namespace

Result<void> run_traffic(const std::string& id, const TrafficOptions& options, const std::string& labels_path,
                         const std::vector<Relabel>& relabels) {
  watch_signals();
  auto fabric = read_lab(id);
  if (!fabric) return std::move(fabric).error();
  auto flows = plan_flows(*fabric, options);
  if (!flows) return std::move(flows).error();
  if (!labels_path.empty()) {
    auto text = read_file(labels_path);
    if (!text) return std::move(text).error();
    auto root = YamlReader::parse(*text, labels_path);
    if (!root) return std::move(root).error();
    auto set = set_flow_labels(*fabric, *root, *flows);
    if (!set) return set;
  }
  for (const Relabel& change : relabels) {
    if (change.flow >= flows->size()) return Error{fmt::format("there is no flow {}", change.flow)};
  }
  const std::string directory = state_directory(id);
  if (::mkdir((directory + "/plan").c_str(), 0755) != 0 && errno != EEXIST)
    return errno_error("make " + directory + "/plan");
  auto noted = note_self(id);
  if (!noted) return noted;
  Traffic traffic(id, *fabric, *flows);
  auto written = replace_file(directory + "/traffic.json", flows_json(*fabric, *flows));
  if (!written) return written;
  auto started = traffic.start(plan_endpoints(*fabric, options, *flows, directory));
  if (!started) return started;
  fmt::print("{} flows run{}; who sends to whom: {}/traffic.json, counters every 100 ms: {}/stats/HOST.jsonl\n",
             flows->size(), options.seconds > 0 ? "" : " until a signal", directory, directory);
  std::fflush(stdout);
  auto ran = traffic.run(options.seconds, relabels);
  auto finished = traffic.finish();
  return ran ? std::move(finished) : std::move(ran);
}

}  // namespace te::lab
