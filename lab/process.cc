// SPDX-License-Identifier: Apache-2.0
#include "lab/process.h"

#include <fcntl.h>
#include <poll.h>
#include <spawn.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <csignal>
#include <cstdlib>
#include <iterator>
#include <sstream>

#include "common/os/clock.h"
#include "common/os/file.h"
#include "common/os/unique_fd.h"

namespace te::lab {
namespace {

constexpr int kPollStepMs = 20;

/// Reads until the other end is closed.
std::string read_all(int fd) {
  std::string text;
  std::array<char, 4096> chunk{};
  while (true) {
    const ssize_t got = ::read(fd, chunk.data(), chunk.size());
    if (got < 0 && errno == EINTR) continue;
    if (got <= 0) return text;
    text.append(chunk.data(), static_cast<std::size_t>(got));
  }
}

Result<UniqueFd> input_file(std::string_view input) {
  UniqueFd fd(::memfd_create("te-lab-input", MFD_CLOEXEC));
  if (!fd) return errno_error("memfd_create");
  if (::write(fd.get(), input.data(), input.size()) != static_cast<ssize_t>(input.size()) ||
      ::lseek(fd.get(), 0, SEEK_SET) != 0) {
    return errno_error("write the input of a program");
  }
  return fd;
}

int wait_for(pid_t pid) {
  int status = 0;
  while (::waitpid(pid, &status, 0) < 0 && errno == EINTR) {
  }
  return status;
}

/// Never returns: becomes the program, or says why not.
[[noreturn]] void become(const std::vector<std::string>& arguments, int input, int errors, pid_t parent) {
  ::prctl(PR_SET_PDEATHSIG, SIGKILL);
  if (::getppid() != parent) ::_exit(127);
  ::setpgid(0, 0);  // what Ctrl-C ends is ours to undo, and these programs do it
  ::dup2(input, STDIN_FILENO);
  ::dup2(errors, STDERR_FILENO);
  std::vector<char*> argv;
  argv.reserve(arguments.size() + 1);
  std::ranges::transform(arguments, std::back_inserter(argv),
                         [](const std::string& argument) { return const_cast<char*>(argument.c_str()); });
  argv.push_back(nullptr);
  ::execvp(argv[0], argv.data());
  const std::string message = errno_error("run " + arguments[0]).message;
  (void)!::write(errors, message.data(), message.size());
  ::_exit(127);
}

struct Child {
  pid_t pid = 0;
  UniqueFd errors;
};

Result<Child> start_child(const std::function<Result<void>()>& task) {
  std::array<int, 2> ends{};
  if (::pipe2(ends.data(), O_CLOEXEC) != 0) return errno_error("pipe");
  UniqueFd reader(ends[0]);
  const UniqueFd writer(ends[1]);
  const pid_t parent = ::getpid();
  const pid_t pid = ::fork();
  if (pid < 0) return errno_error("fork");
  if (pid == 0) {
    ::prctl(PR_SET_PDEATHSIG, SIGKILL);
    if (::getppid() != parent) ::_exit(1);
    const auto result = task();
    if (result) ::_exit(0);
    (void)!::write(writer.get(), result.error().message.data(), result.error().message.size());
    ::_exit(1);
  }
  Child child;
  child.pid = pid;
  child.errors = std::move(reader);
  return child;
}

Result<void> finish_child(Child child) {
  std::string message = read_all(child.errors.get());
  const int status = wait_for(child.pid);
  if (WIFEXITED(status) && WEXITSTATUS(status) == 0) return {};
  return Error{message.empty() ? "a child process died" : std::move(message)};
}

}  // namespace

Result<ProcessId> identify(pid_t pid) {
  auto text = read_file("/proc/" + std::to_string(pid) + "/stat");
  if (!text) return std::move(text).error();
  // The second field is the program's name in parentheses and may hold anything.
  const auto name_end = text->rfind(')');
  if (name_end == std::string::npos) return Error{"/proc/PID/stat has no program name"};
  std::istringstream fields(text->substr(name_end + 1));
  std::string field;
  constexpr int kStateField = 3;
  constexpr int kStartField = 22;
  ProcessId process{pid, 0};
  for (int number = kStateField; number <= kStartField && (fields >> field); ++number) {
    if (number == kStateField && (field == "Z" || field == "X")) return Error{"process has ended"};
    if (number == kStartField) process.start_ticks = std::strtoull(field.c_str(), nullptr, 10);
  }
  return process;
}

bool is_alive(const ProcessId& process) {
  const auto now = identify(process.pid);
  return now.ok() && now->start_ticks == process.start_ticks;
}

Result<void> run_program(const std::vector<std::string>& arguments, std::string_view input) {
  auto source = input_file(input);
  if (!source) return std::move(source).error();
  std::array<int, 2> ends{};
  if (::pipe2(ends.data(), O_CLOEXEC) != 0) return errno_error("pipe");
  const UniqueFd reader(ends[0]);
  UniqueFd writer(ends[1]);
  const pid_t parent = ::getpid();
  const pid_t pid = ::fork();
  if (pid < 0) return errno_error("fork");
  if (pid == 0) become(arguments, source->get(), writer.get(), parent);
  writer.reset();
  const std::string errors = read_all(reader.get());
  const int status = wait_for(pid);
  if (WIFEXITED(status) && WEXITSTATUS(status) == 0) return {};
  std::string command;
  for (const std::string& argument : arguments) command += (command.empty() ? "" : " ") + argument;
  return Error{command + " failed: " + errors};
}

Result<void> run_in_children(const std::vector<std::function<Result<void>()>>& tasks, int at_once) {
  std::vector<Child> running;
  Result<void> outcome;
  const auto finish_oldest = [&] {
    auto result = finish_child(std::move(running.front()));
    running.erase(running.begin());
    if (!result && outcome) outcome = std::move(result);
  };
  for (const auto& task : tasks) {
    if (!outcome) break;
    if (running.size() >= static_cast<std::size_t>(at_once)) finish_oldest();
    auto child = start_child(task);
    if (child) {
      running.push_back(std::move(*child));
    } else {
      outcome = std::move(child).error();
    }
  }
  while (!running.empty()) finish_oldest();
  return outcome;
}

void end_processes(const std::vector<ProcessId>& processes, int grace_ms) {
  const auto any_alive = [&] { return std::ranges::any_of(processes, is_alive); };
  for (const int signal_number : {SIGTERM, SIGKILL}) {
    for (const ProcessId& process : processes) {
      if (is_alive(process)) ::kill(process.pid, signal_number);
    }
    const std::int64_t end_ns = monotonic_ns() + std::int64_t{grace_ms} * 1'000'000;
    while (any_alive() && monotonic_ns() < end_ns) ::poll(nullptr, 0, kPollStepMs);
  }
}

}  // namespace te::lab
