// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <sys/types.h>

#include <cstddef>
#include <string>
#include <string_view>

#include "common/base/result.h"

namespace te {

/// The whole of a file; an Error names it and says why.
Result<std::string> read_file(const std::string& path);
/// The same for files that others write: never waits, as a pipe would, and never takes more than `most_bytes`.
Result<std::string> read_regular_file(const std::string& path, std::size_t most_bytes);
/// Replaces a file in one step (temporary file beside it, fsync, rename), so that no reader sees half of it. `mode`: as
/// for open().
Result<void> replace_file(const std::string& path, std::string_view text, mode_t mode = 0644);
/// `doing`: what errno says, as an Error: "open /x: No such file or directory".
Error errno_error(const std::string& doing);
Error errno_error(const std::string& doing, int error_number);

}  // namespace te
