// SPDX-License-Identifier: Apache-2.0
#include "host-agent/io/instance_lock.h"

#include <fcntl.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <sys/sysmacros.h>
#include <unistd.h>

#include <array>
#include <cerrno>
#include <filesystem>
#include <string>
#include <system_error>

#include "common/os/file.h"

namespace te::agent {
namespace {

namespace fs = std::filesystem;

Error lock_error(const std::string& doing, int error_number) {
  Error error = errno_error(doing, error_number);
  if (error_number == EACCES || error_number == EPERM) {
    error.message += "; run as root, or set `run_directory` to a directory that can be written";
  }
  return error;
}

/// A mounted bpffs has a device number of its own, whatever path leads to it.
Result<std::string> lock_path(const AgentConfig& config) {
  fs::path place = config.bpffs;
  std::error_code ignored;
  while (!fs::exists(place, ignored) && place.has_relative_path()) place = place.parent_path();
  struct stat status {};
  if (::stat(place.c_str(), &status) != 0) return lock_error("look at " + place.string(), errno);
  return config.run_directory + "/" + config.node + "@" + std::to_string(major(status.st_dev)) + "-" +
         std::to_string(minor(status.st_dev)) + ".lock";
}

/// ", process 123"; empty when its holder has not written it yet.
std::string holder_of(int file) {
  std::array<char, 16> text{};
  const ssize_t got = ::pread(file, text.data(), text.size(), 0);
  const std::string pid(text.data(), got > 0 ? static_cast<std::size_t>(got) : 0);
  const bool is_number = !pid.empty() && pid.find_first_not_of("0123456789") == std::string::npos;
  return is_number ? ", process " + pid : "";
}

Result<void> write_holder(int file, const std::string& path) {
  const std::string pid = std::to_string(::getpid());
  if (::ftruncate(file, 0) == 0 && ::pwrite(file, pid.data(), pid.size(), 0) == static_cast<ssize_t>(pid.size())) {
    return {};
  }
  return errno_error("write " + path);
}

}  // namespace

Result<InstanceLock> InstanceLock::take(const AgentConfig& config) {
  std::error_code failed;
  fs::create_directories(config.run_directory, failed);
  if (failed) return lock_error("make " + config.run_directory, failed.value());
  const auto path = lock_path(config);
  if (!path) return path.error();
  UniqueFd file(::open(path->c_str(), O_RDWR | O_CREAT | O_CLOEXEC | O_NOFOLLOW, 0644));
  if (!file) return lock_error("open " + *path, errno);
  if (::flock(file.get(), LOCK_EX | LOCK_NB) != 0) {
    if (errno != EWOULDBLOCK) return lock_error("lock " + *path, errno);
    return Error{"an agent of node '" + config.node + "' is at work (it holds " + *path + holder_of(file.get()) +
                 "); stop it first"};
  }
  if (auto written = write_holder(file.get(), *path); !written) return std::move(written).error();
  return InstanceLock(std::move(file));
}

}  // namespace te::agent
