// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <string>

#include "common/base/result.h"

namespace te::lab {

enum class TcSide : std::uint8_t { kIngress, kEgress };
/// Of two programs of te-lab on one side, the one at the wire is the first to see what comes in and the last to see
/// what leaves.
enum class TcPlace : std::uint8_t { kInside, kAtTheWire };

/// Puts a tc program on an interface of the calling process's namespace, in place of one that te-lab put there before.
/// It outlives the process.
Result<void> attach_tc(int program_fd, const std::string& interface, TcSide side, TcPlace place = TcPlace::kInside);
/// Takes te-lab's program inside off; that there is none is no Error.
Result<void> detach_tc(const std::string& interface, TcSide side);

}  // namespace te::lab
