// SPDX-License-Identifier: Apache-2.0
#include "common/os/file.h"

#include <fcntl.h>
#include <unistd.h>

#include <array>
#include <cerrno>
#include <cstdio>
#include <system_error>

#include "common/os/unique_fd.h"

namespace te {

Error errno_error(const std::string& doing, int error_number) {
  return Error{doing + ": " + std::generic_category().message(error_number)};
}

Error errno_error(const std::string& doing) { return errno_error(doing, errno); }

Result<std::string> read_file(const std::string& path) {
  const UniqueFd fd(::open(path.c_str(), O_RDONLY | O_CLOEXEC));
  if (!fd) return errno_error("read " + path);
  std::string text;
  std::array<char, 65536> chunk{};
  while (true) {
    const ssize_t got = ::read(fd.get(), chunk.data(), chunk.size());
    if (got < 0 && errno == EINTR) continue;
    if (got < 0) return errno_error("read " + path);
    if (got == 0) return text;
    text.append(chunk.data(), static_cast<std::size_t>(got));
  }
}

Result<void> replace_file(const std::string& path, std::string_view text) {
  const std::string temporary = path + ".tmp." + std::to_string(::getpid());
  UniqueFd fd(::open(temporary.c_str(), O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0644));
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
