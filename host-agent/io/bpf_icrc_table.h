// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <vector>

#include "bpf/te_abi.h"

namespace te::agent {

/// The rows of the kernel's ICRC table, by UDP length / 4: what the ICRC takes when bits of the source port change.
[[nodiscard]] std::vector<TeIcrcRow> make_icrc_rows();

}  // namespace te::agent
