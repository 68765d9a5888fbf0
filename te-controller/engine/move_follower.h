// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <map>
#include <string>

#include "te-controller/engine/fleet.h"
#include "te-controller/engine/ledger.h"
#include "te-controller/engine/steering.h"

namespace te {

/// What an agent reported: entries in force, and why others are not.
struct SteeringNews {
  std::uint64_t revision = 0;
  std::map<SteeringKey, std::uint16_t> programmed;
  std::map<SteeringKey, std::string> failures;
};
/// An Error: malformed.
Result<SteeringNews> parse_steering_report(const v1::SteeringReport& report);

/// Follows moves that no rate can judge: steering taken back by a pause, and flows put off a link that takes none.
/// Each is followed until the agent has it in force and the new port is on the wire. Pure.
class MoveFollower {
 public:
  static constexpr std::int64_t kLimitNs = 30'000'000'000;
  static constexpr std::int64_t kAgainNs = 2'000'000'000;  ///< after a failure

  MoveFollower(const Fleet& fleet, Ledger& ledger) : fleet_(&fleet), ledger_(&ledger) {}

  struct Followed {
    int number = 0;  ///< in the ledger, sent
    std::string node;
    SteeringKey key;
    std::uint64_t revision = 0;
    std::uint16_t port = 0;
    std::string verified;  ///< outcome, once the port is on the wire
    std::int64_t sent_ns = 0;
    bool programmed = false;
    bool failed = false;
  };
  void follow(Followed move);
  void take(const std::string& node, const SteeringNews& news, std::int64_t now_ns);
  void observe(std::int64_t now_ns);
  /// True while a move of the flow is on its way, or failed just now.
  [[nodiscard]] bool holds(const FlowId& flow) const { return followed_.contains(flow); }

 private:
  const Fleet* fleet_;
  Ledger* ledger_;
  std::map<FlowId, Followed> followed_;
};

}  // namespace te
