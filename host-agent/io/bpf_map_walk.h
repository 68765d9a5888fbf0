// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>
#include <span>

#include "common/base/result.h"

namespace te::agent {

/// Key and value of one entry, as they lie in the kernel.
using TakeEntry = std::function<void(std::span<const std::uint8_t>, std::span<const std::uint8_t>)>;

/// Calls `take` with each entry of a hash map whose keys and values have these sizes.
Result<void> for_each_entry(int map_fd, std::size_t key_bytes, std::size_t value_bytes, const TakeEntry& take);

}  // namespace te::agent
