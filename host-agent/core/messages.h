// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <span>
#include <string>
#include <vector>

#include "common/base/result.h"
#include "common/netlink/link_message.h"
#include "host-agent/core/flow_table.h"
#include "host-agent/core/probe_scheduler.h"
#include "host-agent/core/source_board.h"
#include "host-agent/core/steering_reconciler.h"
#include "te/v1/agent.pb.h"

namespace te::agent {

// Between our values and the protocol's messages. What comes from the controller is checked; an Error says what is
// wrong.

[[nodiscard]] v1::FlowKey to_message(const FlowKey& key);
[[nodiscard]] v1::FlowReport to_message(const FlowRecord& flow);
[[nodiscard]] v1::SteeringEntry to_message(const Steering& steering);
[[nodiscard]] v1::ProbeResult to_message(const ProbeReport& report);
[[nodiscard]] v1::LinkReport to_message(const netlink::LinkMessage& link);
[[nodiscard]] v1::SteeringReport steering_report(const SteeringReconciler& reconciler);
/// The whole answer to a request that is not worked on.
[[nodiscard]] v1::ProbeResult refused_probe(const v1::ProbeRequest& request, const std::string& reason);
[[nodiscard]] v1::SteeringReport refused_steering(const v1::SteeringSet& set, const std::string& reason);
[[nodiscard]] v1::SourceUpdate source_update(const SourceBoard& board);

Result<FlowKey> flow_key_from(const v1::FlowKey& message);
/// Zero pace, attempts or timeout take the defaults of ProbeOrder.
Result<ProbeOrder> probe_order_from(const v1::ProbeRequest& message);
/// The entries of a set that can be read; `problems` takes the others.
[[nodiscard]] std::vector<Steering> steering_from(const v1::SteeringSet& message, std::vector<std::string>& problems);

}  // namespace te::agent
