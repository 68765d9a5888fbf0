// SPDX-License-Identifier: Apache-2.0
#include "te-controller/cli/output.h"

#include <cerrno>
#include <system_error>

namespace te {

Result<Output> write_output(std::FILE* stream, const std::string& text) {
  errno = 0;
  const bool written = std::fwrite(text.data(), 1, text.size(), stream) == text.size() && std::fflush(stream) == 0;
  const int problem = errno != 0 ? errno : EIO;  // 0: an earlier write failed
  if (written && std::ferror(stream) == 0) return Output::kWritten;
  if (problem == EPIPE) return Output::kReaderGone;
  return Error{"the output could not be written: " + std::generic_category().message(problem)};
}

}  // namespace te
