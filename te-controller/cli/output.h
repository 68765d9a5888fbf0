// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <cstdio>
#include <string>

#include "common/base/result.h"

namespace te {

enum class Output : std::uint8_t {
  kWritten,
  kReaderGone,  ///< a pipe whose reader has seen enough, as in 'tectl flows | head': the end, but no failure
};

/// Writes and flushes. An Error: it did not get where it should (a full disk).
Result<Output> write_output(std::FILE* stream, const std::string& text);

}  // namespace te
