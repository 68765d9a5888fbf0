// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>

#include "common/base/result.h"

namespace te::agent {

/// Whether the clsact qdisc of an interface of this network namespace has a filter, of anybody, at ingress or egress.
Result<bool> has_tc_filters(std::uint32_t ifindex);

}  // namespace te::agent
