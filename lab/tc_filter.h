// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <string>

#include "common/base/result.h"

namespace te::lab {

enum class TcSide : std::uint8_t { kIngress, kEgress };

/// Puts a tc program on an interface of the calling process's namespace, in place of one that te-lab put there before.
/// It outlives the process.
Result<void> attach_tc(int program_fd, const std::string& interface, TcSide side);
/// Takes te-lab's program off; that there is none is no Error.
Result<void> detach_tc(const std::string& interface, TcSide side);

}  // namespace te::lab
