// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <vector>

#include "common/roce/packet.h"
#include "lab/endpoint/plan.h"
#include "lab/endpoint/rate_control.h"
#include "lab/endpoint/requester.h"
#include "lab/endpoint/responder.h"

namespace te::lab {

/// One reliable-connection QP: both halves, and congestion control as notification and reaction point.
class QueuePair {
 public:
  struct Congestion {
    std::uint64_t ce_marks = 0;  ///< data packets received with CE
    std::uint64_t cnps_sent = 0;
    std::uint64_t cnps_received = 0;
  };

  QueuePair(const EndpointPlan& endpoint, const QpPlan& plan);

  /// A packet addressed to this QP, its ICRC already checked.
  void on_packet(const roce::Packet& packet, std::int64_t now_ns);
  void on_time(std::int64_t now_ns) { requester_.on_time(now_ns); }
  /// Answers and congestion notifications that are due.
  [[nodiscard]] std::vector<roce::Packet> take_control();
  /// Whether window and rate allow a data packet at `now_ns`.
  [[nodiscard]] bool has_data(std::int64_t now_ns) const;
  /// The next data packet. Its payload points into memory that lives as long as the program.
  [[nodiscard]] roce::Packet take_data(std::int64_t now_ns);

  /// Source port by the kernel's rule from now on; 0 derives it from the QPNs.
  void set_flow_label(std::uint32_t flow_label);
  void stop() { requester_.stop(); }
  [[nodiscard]] bool is_drained() const { return !plan_.sends || requester_.is_drained(); }

  [[nodiscard]] const QpPlan& plan() const { return plan_; }
  [[nodiscard]] const Requester& requester() const { return requester_; }
  [[nodiscard]] const Responder& responder() const { return responder_; }
  [[nodiscard]] const Congestion& congestion() const { return congestion_; }
  [[nodiscard]] std::uint16_t source_port() const { return source_port_; }
  [[nodiscard]] double rate_bps(std::int64_t now_ns) { return rate_.rate_bps(now_ns); }

 private:
  [[nodiscard]] roce::Packet blank(roce::Opcode opcode, std::uint8_t traffic_class) const;
  void note_congestion(std::int64_t now_ns);

  QpPlan plan_;
  IpAddress address_;
  Requester requester_;
  Responder responder_;
  RateControl rate_;
  std::uint16_t source_port_ = 0;
  std::int64_t next_data_ns_ = 0;  ///< earliest time of the next data packet under the rate
  std::int64_t next_cnp_ns_ = 0;
  bool cnp_due_ = false;
  Congestion congestion_;
};

/// Bytes of a packet as a link's shaper counts them: with the Ethernet header.
[[nodiscard]] std::size_t wire_bytes(const roce::Packet& packet);

}  // namespace te::lab
