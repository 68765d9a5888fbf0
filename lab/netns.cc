// SPDX-License-Identifier: Apache-2.0
#include "lab/netns.h"

#include <fcntl.h>
#include <sched.h>
#include <sys/stat.h>
#include <unistd.h>

#include <charconv>
#include <filesystem>
#include <set>

#include "common/os/file.h"
#include "common/os/unique_fd.h"

namespace te::lab {
namespace {

namespace fs = std::filesystem;

constexpr const char* kNetnsDirectory = "/run/netns";

/// Names in `directory`; none when it cannot be read.
std::vector<std::string> names_in(const std::string& directory) {
  std::vector<std::string> names;
  std::error_code problem;
  for (fs::directory_iterator entry(directory, problem), end; !problem && entry != end; entry.increment(problem)) {
    names.push_back(entry->path().filename().string());
  }
  return names;
}

}  // namespace

Result<void> enter_netns(const std::string& name) {
  const std::string path = std::string(kNetnsDirectory) + "/" + name;
  const UniqueFd fd(::open(path.c_str(), O_RDONLY | O_CLOEXEC));
  if (!fd) return errno_error("open namespace " + path);
  if (::setns(fd.get(), CLONE_NEWNET) != 0) return errno_error("enter namespace " + name);
  return {};
}

std::vector<std::string> netns_with_prefix(const std::string& prefix) {
  std::vector<std::string> names = names_in(kNetnsDirectory);
  std::erase_if(names, [&](const std::string& name) { return !name.starts_with(prefix); });
  return names;
}

std::vector<ProcessId> processes_in(const std::vector<std::string>& names) {
  std::set<std::pair<dev_t, ino_t>> wanted;
  struct stat status {};
  for (const std::string& name : names) {
    if (::stat((std::string(kNetnsDirectory) + "/" + name).c_str(), &status) == 0) {
      wanted.emplace(status.st_dev, status.st_ino);
    }
  }
  std::vector<ProcessId> found;
  if (wanted.empty()) return found;
  for (const std::string& entry : names_in("/proc")) {
    pid_t pid = 0;
    const auto [end, problem] = std::from_chars(entry.data(), entry.data() + entry.size(), pid);
    if (problem != std::errc() || *end != '\0' || pid == ::getpid()) continue;
    if (::stat(("/proc/" + entry + "/ns/net").c_str(), &status) != 0) continue;
    if (!wanted.contains({status.st_dev, status.st_ino})) continue;
    if (auto process = identify(pid)) found.push_back(*process);
  }
  return found;
}

Result<void> write_sysctl(const std::string& path, const std::string& value) {
  const UniqueFd fd(::open(("/proc/sys/" + path).c_str(), O_WRONLY | O_CLOEXEC));
  if (!fd || ::write(fd.get(), value.data(), value.size()) != static_cast<ssize_t>(value.size())) {
    return errno_error("set " + path + " to " + value);
  }
  return {};
}

}  // namespace te::lab
