// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <string>

#include "common/base/result.h"

namespace te {

/// Sends spdlog's default logger to stderr with time, level and `program`. Levels say what the reader should do:
/// error: act now; warn: look when you can; info: what changed; debug: for the next developer.
/// `level`: error, warn, info or debug.
Result<void> start_log(const std::string& program, const std::string& level);

}  // namespace te
