// SPDX-License-Identifier: Apache-2.0
#include "common/os/file.h"

#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <array>
#include <cerrno>
#include <cstdio>
#include <limits>
#include <system_error>

#include "common/os/unique_fd.h"

namespace te {
namespace {

Error too_large(const std::string& path, std::size_t most_bytes) {
  return Error{"read " + path + ": larger than " + std::to_string(most_bytes) + " bytes"};
}

Result<std::string> read_all(int fd, const std::string& path, std::size_t most_bytes) {
  std::string text;
  std::array<char, 65536> chunk{};
  while (true) {
    const ssize_t got = ::read(fd, chunk.data(), chunk.size());
    if (got < 0 && errno == EINTR) continue;
    if (got < 0) return errno_error("read " + path);
    if (got == 0) return text;
    if (static_cast<std::size_t>(got) > most_bytes - text.size()) return too_large(path, most_bytes);
    text.append(chunk.data(), static_cast<std::size_t>(got));
  }
}

}  // namespace

Error errno_error(const std::string& doing, int error_number) {
  return Error{doing + ": " + std::generic_category().message(error_number)};
}

Error errno_error(const std::string& doing) { return errno_error(doing, errno); }

Result<std::string> read_file(const std::string& path) {
  const UniqueFd fd(::open(path.c_str(), O_RDONLY | O_CLOEXEC));
  if (!fd) return errno_error("read " + path);
  return read_all(fd.get(), path, std::numeric_limits<std::size_t>::max());
}

Result<std::string> read_regular_file(const std::string& path, std::size_t most_bytes) {
  const UniqueFd fd(::open(path.c_str(), O_RDONLY | O_CLOEXEC | O_NONBLOCK | O_NOCTTY));
  if (!fd) return errno_error("read " + path);
  struct stat status {};
  if (::fstat(fd.get(), &status) != 0) return errno_error("read " + path);
  if (!S_ISREG(status.st_mode)) return Error{"read " + path + ": not a regular file"};
  if (static_cast<std::size_t>(status.st_size) > most_bytes) return too_large(path, most_bytes);
  return read_all(fd.get(), path, most_bytes);
}

Result<void> replace_file(const std::string& path, std::string_view text, mode_t mode) {
  const std::string temporary = path + ".tmp." + std::to_string(::getpid());
  UniqueFd fd(::open(temporary.c_str(), O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, mode));
  if (!fd) return errno_error("write " + temporary);
  while (!text.empty()) {
    const ssize_t put = ::write(fd.get(), text.data(), text.size());
    if (put < 0 && errno == EINTR) continue;
    if (put < 0) {
      Error error = errno_error("write " + temporary);
      ::unlink(temporary.c_str());
      return error;
    }
    text.remove_prefix(static_cast<std::size_t>(put));
  }
  if (::fsync(fd.get()) != 0 || ::rename(temporary.c_str(), path.c_str()) != 0) {
    Error error = errno_error("write " + path);
    ::unlink(temporary.c_str());
    return error;
  }
  return {};
}

}  // namespace te
