// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>
#include <cstdint>
#include <string>
#include <vector>

#include "common/base/ip_address.h"
#include "common/base/result.h"
#include "lab/endpoint/message_shape.h"

namespace te::lab {

struct NicPlan {
  std::string interface = "eth0";
  IpAddress address;
};

/// One end of a QP pair.
struct QpPlan {
  std::size_t nic = 0;  ///< index into EndpointPlan::nics
  std::uint32_t qpn = 0;
  std::uint32_t remote_qpn = 0;
  std::string peer;  ///< the other host's name
  IpAddress remote;
  std::uint32_t send_psn = 0;     ///< first PSN of what this end sends
  std::uint32_t receive_psn = 0;  ///< first PSN of what the other end sends
  std::uint32_t flow_label = 0;   ///< 0: the source port comes from the QPNs
  bool sends = false;             ///< this end sends messages; otherwise it only answers
};

/// What one endpoint process does, as the parent writes it and the endpoint reads it.
struct EndpointPlan {
  std::string host;
  std::vector<NicPlan> nics;
  double rate_bps = 0;  ///< of each NIC, Ethernet header counted
  std::uint32_t path_mtu = 4096;
  Verb verb = Verb::kWrite;
  std::uint32_t message_bytes = 65536;
  std::uint32_t window_packets = 16;
  std::uint32_t ack_every = 4;
  std::uint32_t timeout_ms = 250;
  std::uint32_t retries = 7;
  std::string qp_table_path;
  std::string stats_path;
  std::vector<QpPlan> qps;
};

[[nodiscard]] std::string plan_json(const EndpointPlan& plan);
Result<EndpointPlan> read_plan(const std::string& path);

}  // namespace te::lab
