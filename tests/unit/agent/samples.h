// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <string>

#include "common/base/ip_address.h"
#include "host-agent/core/flow_table.h"
#include "tests/support/moments.h"

namespace te::agent::test {

inline IpAddress ip(const std::string& text) { return IpAddress::parse(text).value(); }

inline FlowKey key(const std::string& source, const std::string& destination, std::uint32_t qpn) {
  return {2, ip(source), ip(destination), qpn};
}

/// An egress flow to QPN `qpn` that has sent `packets` packets of 1000 bytes with 900 of message data.
inline FlowSample sample(std::uint32_t qpn, std::uint64_t packets) {
  FlowSample made;
  made.key = key("10.0.0.1", "10.0.0.2", qpn);
  made.source_port = 50000;
  made.wire_port = 50000;
  made.counters.packets = packets;
  made.counters.bytes = packets * 1000;
  made.counters.payload_bytes = packets * 900;
  return made;
}

inline FlowRecord egress(const std::string& local, const std::string& peer, std::uint32_t remote_qpn) {
  FlowRecord flow;
  flow.key = key(local, peer, remote_qpn);
  return flow;
}

inline FlowRecord ingress(const std::string& peer, const std::string& local, std::uint32_t local_qpn) {
  FlowRecord flow;
  flow.key = key(peer, local, local_qpn);
  flow.direction = FlowDirection::kIngress;
  return flow;
}

}  // namespace te::agent::test
