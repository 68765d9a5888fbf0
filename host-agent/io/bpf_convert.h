// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "bpf/te_abi.h"
#include "host-agent/core/flow_sample.h"

namespace te::agent {

/// Between the kernel's structs and the agent's. Keys must be of the family that the name says.
[[nodiscard]] TeFlowKeyV4 to_kernel_v4(const FlowKey& key);
[[nodiscard]] TeFlowKeyV6 to_kernel_v6(const FlowKey& key);
[[nodiscard]] FlowKey from_kernel(const TeFlowKeyV4& key);
[[nodiscard]] FlowKey from_kernel(const TeFlowKeyV6& key);
[[nodiscard]] FlowSample from_kernel(const FlowKey& key, const TeFlow& flow);
[[nodiscard]] KernelEvent from_kernel(const TeEvent& event);

}  // namespace te::agent
