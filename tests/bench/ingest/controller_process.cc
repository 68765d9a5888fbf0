// SPDX-License-Identifier: Apache-2.0
#include "tests/bench/ingest/controller_process.h"

#include <fcntl.h>
#include <google/protobuf/util/json_util.h>
#include <signal.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <unistd.h>

#include <chrono>
#include <cstdio>
#include <fstream>
#include <sstream>
#include <thread>

#include "common/os/file.h"
#include "te-controller/cli/api_client.h"
#include "te/v1/api.pb.h"

namespace te {
namespace {

constexpr std::chrono::seconds kReadyLimit{20};
constexpr std::chrono::seconds kEndLimit{5};
constexpr std::chrono::seconds kApiLimit{60};  // on a machine with other work it takes in reports at the limit
constexpr std::chrono::milliseconds kPoll{20};
// Many times what switches may be asked for: thousands of pairs are to be explored within seconds.
constexpr int kAnswersPerSwitch = 100'000;

std::string config_of(const ControllerSettings& settings) {
  const std::string at = settings.directory.string();
  return "topology: " + at + "/topology.yaml\nstate: " + at +
         "/state.db\nagents: {listen: \"127.0.0.1:0\", certificate: " + settings.tls.certificate +
         ", key: " + settings.tls.key + ", ca: " + settings.tls.ca + "}\napi: {unix: " + at +
         "/api.sock}\nmetrics: {listen: \"127.0.0.1:0\"}\nprobing: {answers_per_switch_per_s: " +
         std::to_string(kAnswersPerSwitch) + "}\nreport_interval_ms: " + std::to_string(settings.report_interval_ms) +
         "\n";
}

[[noreturn]] void become(const ControllerSettings& settings, const std::string& config, const std::string& log) {
  ::prctl(PR_SET_PDEATHSIG, SIGKILL);
  const int output = ::open(log.c_str(), O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0600);
  ::dup2(output, STDOUT_FILENO);
  ::dup2(output, STDERR_FILENO);
  ::execl(settings.program.c_str(), "te-controller", "--config", config.c_str(), nullptr);
  ::_exit(127);
}

/// User and system time in a `stat` file of /proc; 0: it cannot be read.
double cpu_seconds(const std::string& path) {
  std::string text;
  std::getline(std::ifstream(path), text);
  std::istringstream fields(text.substr(std::min(text.size(), text.rfind(')') + 1)));
  constexpr int kBeforeUserTime = 11;  // from the state on
  std::string skipped;
  for (int i = 0; i < kBeforeUserTime; ++i) fields >> skipped;
  double user = 0;
  double system = 0;
  fields >> user >> system;
  return (user + system) / static_cast<double>(::sysconf(_SC_CLK_TCK));
}

}  // namespace

Result<std::unique_ptr<ControllerProcess>> ControllerProcess::start(const ControllerSettings& settings) {
  const std::string config = settings.directory / "controller.yaml";
  const std::string log = settings.directory / "controller.log";
  if (auto written = replace_file(settings.directory / "topology.yaml", settings.topology_yaml); !written)
    return std::move(written).error();
  if (auto written = replace_file(config, config_of(settings)); !written) return std::move(written).error();
  const pid_t pid = ::fork();
  if (pid < 0) return errno_error("fork");
  if (pid == 0) become(settings, config, log);
  auto controller = std::make_unique<ControllerProcess>(pid, settings.directory);
  if (auto ready = controller->wait_ready(); !ready) return std::move(ready).error();
  return controller;
}

ControllerProcess::~ControllerProcess() {
  ::kill(pid_, SIGTERM);
  const auto end = std::chrono::steady_clock::now() + kEndLimit;
  while (::waitpid(pid_, nullptr, WNOHANG) == 0) {
    if (std::chrono::steady_clock::now() > end) ::kill(pid_, SIGKILL);
    std::this_thread::sleep_for(kPoll);
  }
}

/// It says its port in the log.
Result<void> ControllerProcess::wait_ready() {
  static constexpr std::string_view kBefore = "agents on port ";
  const auto end = std::chrono::steady_clock::now() + kReadyLimit;
  std::string log;
  while (std::chrono::steady_clock::now() < end) {
    if (auto text = read_file(directory_ / "controller.log")) log = *std::move(text);
    const std::size_t ready = log.find(kBefore);
    if (ready != std::string::npos && log.find('\n', ready) != std::string::npos) {
      port_ = static_cast<std::uint16_t>(std::stoul(log.substr(ready + kBefore.size())));
      return {};
    }
    std::this_thread::sleep_for(kPoll);
  }
  return Error{"te-controller did not get ready: " + log};
}

Result<ControllerStatus> ControllerProcess::status() const {
  const auto reply = call_api({.socket_path = directory_ / "api.sock"}, "GET", "/v1/status", kApiLimit);
  if (!reply) return reply.error();
  v1::Status status;
  if (!google::protobuf::util::JsonStringToMessage(reply->body, &status).ok())
    return Error{"te-controller's status cannot be decoded: " + reply->body};
  return ControllerStatus{.agents = status.agents_connected(),
                          .flows = status.flows(),
                          .known_paths = status.flows_with_known_path(),
                          .plan_cycles = status.plan_cycles(),
                          .plan_ms = status.last_plan_ms()};
}

CpuTime ControllerProcess::cpu() const {
  const std::string at = "/proc/" + std::to_string(pid_);
  return {.thread_s = cpu_seconds(at + "/task/" + std::to_string(pid_) + "/stat"),
          .process_s = cpu_seconds(at + "/stat")};
}

double ControllerProcess::rss_mb() const {
  std::ifstream file("/proc/" + std::to_string(pid_) + "/statm");
  double size = 0;
  double resident = 0;
  file >> size >> resident;
  return resident * static_cast<double>(::sysconf(_SC_PAGESIZE)) / (1 << 20);
}

std::uint64_t ControllerProcess::socket_bytes() const {
  std::ifstream file("/proc/net/tcp");
  std::array<char, 5> port{};
  std::snprintf(port.data(), port.size(), "%04X", port_);
  std::string line;
  std::getline(file, line);
  std::uint64_t sum = 0;
  while (std::getline(file, line)) {
    std::istringstream fields(line);
    std::string slot;
    std::string local;
    std::string remote;
    std::string state;
    std::string queues;
    fields >> slot >> local >> remote >> state >> queues;
    const std::string of = std::string(":") + port.data();
    if (state != "01" || queues.size() != 17) continue;
    if (remote.ends_with(of)) sum += std::stoull(queues.substr(0, 8), nullptr, 16);  // sent, not yet received
    if (local.ends_with(of)) sum += std::stoull(queues.substr(9), nullptr, 16);      // received, not yet read
  }
  return sum;
}

}  // namespace te
