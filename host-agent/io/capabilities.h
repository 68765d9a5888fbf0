// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <span>

#include "common/base/result.h"

namespace te::agent {

/// Gives up, for this thread and those it starts, every capability (capabilities(7)) but `kept`, and the way to get one
/// back by executing a program. Threads that are there already each call it for themselves. What the process has not,
/// it does not get.
Result<void> keep_only_capabilities(std::span<const int> kept);

}  // namespace te::agent
