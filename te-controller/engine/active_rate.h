// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>
#include <cstdint>

#include "te-controller/engine/flow.h"

namespace te {

/// Mean rate over the samples that began at or after `from_ns` (a fifth of an interval of jitter allowed), of the
/// `newest`, and of those at least half as fast as the fastest: jobs pause to compute. 0: there are none.
[[nodiscard]] double active_rate(const FlowEnd& end, std::int64_t from_ns, std::size_t newest);
/// Among the `newest` samples, one is less than half as fast as another.
[[nodiscard]] bool bursty(const FlowEnd& end, std::size_t newest);
/// Samples that began at or after `from_ns`, with the same allowance.
[[nodiscard]] std::size_t intervals_since(const FlowEnd& end, std::int64_t from_ns);

}  // namespace te
