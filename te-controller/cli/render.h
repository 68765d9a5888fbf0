// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <string>

#include "te/v1/api.pb.h"

namespace te {

/// What people read of an API reply; ends with a newline. `colour`: terminal colours.
[[nodiscard]] std::string render(const v1::Status& status, bool colour);
[[nodiscard]] std::string render(const v1::NodeList& nodes, bool colour);
[[nodiscard]] std::string render(const v1::SwitchList& switches, bool colour);
[[nodiscard]] std::string render(const v1::LinkList& links, bool colour);
[[nodiscard]] std::string render(const v1::Imbalance& imbalance, bool colour);
[[nodiscard]] std::string render(const v1::FlowList& flows, bool colour);
[[nodiscard]] std::string render(const v1::PathList& paths, bool colour);
[[nodiscard]] std::string render(const v1::Explanation& explanation, bool colour);
[[nodiscard]] std::string render(const v1::PlanView& plan, bool colour);
[[nodiscard]] std::string render(const v1::MoveList& moves, bool colour);
[[nodiscard]] std::string render(const v1::OverrideList& overrides, bool colour);
/// A line each, without a heading, so that more can follow.
[[nodiscard]] std::string render(const v1::EventList& events, bool colour);

}  // namespace te
