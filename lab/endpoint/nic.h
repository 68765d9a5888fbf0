// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <unordered_map>
#include <vector>

#include "common/roce/packet.h"
#include "lab/endpoint/queue_pair.h"
#include "lab/endpoint/report.h"
#include "lab/endpoint/sockets.h"

namespace te::lab {

/// A NIC: one line, which its QPs take in turns.
class Nic {
 public:
  /// `qps`: those of this NIC; they outlive it. `rate_bps`: of the line.
  Nic(NicSockets sockets, std::vector<QueuePair*> qps, double rate_bps);

  /// Hands what has arrived to the QPs.
  void receive(std::int64_t now_ns);
  /// Queues answers and, when `with_data`, what the line has room for; sends what the interface takes.
  void send(std::int64_t now_ns, bool with_data);
  [[nodiscard]] EndpointCounters counters();

 private:
  void queue_data(std::int64_t now_ns);
  void queue(roce::Packet packet);

  NicSockets sockets_;
  std::vector<QueuePair*> qps_;
  std::unordered_map<std::uint32_t, QueuePair*> by_qpn_;
  std::vector<NicSockets::Outgoing> waiting_;  ///< built, not yet taken by the interface
  EndpointCounters counters_;
  double line_bps_;
  std::size_t next_qp_ = 0;        ///< whose turn it is on the line
  std::int64_t line_free_ns_ = 0;  ///< when the last bit that was queued has left
  std::uint16_t ip_id_ = 0;
};

}  // namespace te::lab
