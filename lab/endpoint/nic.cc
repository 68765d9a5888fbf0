// SPDX-License-Identifier: Apache-2.0
#include "lab/endpoint/nic.h"

#include <algorithm>
#include <utility>

namespace te::lab {
namespace {

/// A NIC sends a little slower than the links carry, so that what queues does so in the NIC, where its QPs take turns,
/// and not in the fabric, where a longer way of the acknowledgements would mean a smaller share.
constexpr double kLineShare = 0.99;
/// Line time that a late turn may catch up on at once.
constexpr std::int64_t kMaxCatchUpNs = 10'000'000;
constexpr std::size_t kReceiveLimit = 512;
constexpr std::size_t kMaxWaiting = 256;

}  // namespace

Nic::Nic(NicSockets sockets, std::vector<QueuePair*> qps, double rate_bps)
    : sockets_(std::move(sockets)), qps_(std::move(qps)), line_bps_(kLineShare * rate_bps) {
  for (QueuePair* qp : qps_) by_qpn_.emplace(qp->plan().qpn, qp);
}

void Nic::receive(std::int64_t now_ns) {
  sockets_.receive(kReceiveLimit, [&](std::span<const std::uint8_t> bytes) {
    const auto packet = roce::parse(bytes);
    if (!packet) {
      ++counters_.malformed;
      return;
    }
    if (!roce::has_valid_icrc(bytes)) {
      ++counters_.icrc_errors;
      return;
    }
    const auto found = by_qpn_.find(packet->destination_qpn);
    if (found == by_qpn_.end() || found->second->plan().remote != packet->source) {
      ++counters_.unknown_qp;
      return;
    }
    found->second->on_packet(*packet, now_ns);
  });
}

void Nic::send(std::int64_t now_ns, bool with_data) {
  line_free_ns_ = std::max(line_free_ns_, now_ns - kMaxCatchUpNs);
  for (QueuePair* qp : qps_) {
    for (const roce::Packet& packet : qp->take_control()) queue(packet);
  }
  if (with_data) queue_data(now_ns);
  const std::size_t sent = sockets_.send(waiting_);
  waiting_.erase(waiting_.begin(), waiting_.begin() + static_cast<std::ptrdiff_t>(sent));
}

EndpointCounters Nic::counters() {
  counters_.receive_drops = sockets_.receive_drops();
  return counters_;
}

void Nic::queue(roce::Packet packet) {
  // Identification 0 would be replaced by the kernel, after the ICRC was made over it.
  if (++ip_id_ == 0) ++ip_id_;
  packet.ip_id = ip_id_;
  line_free_ns_ += static_cast<std::int64_t>(static_cast<double>(wire_bytes(packet)) * 8e9 / line_bps_);
  waiting_.push_back({packet.destination, roce::build(packet)});
}

void Nic::queue_data(std::int64_t now_ns) {
  // The line serves its QPs round robin, a packet each; it is busy until the last bit has left.
  while (line_free_ns_ <= now_ns && waiting_.size() < kMaxWaiting) {
    std::size_t tried = 0;
    while (tried < qps_.size() && !qps_[(next_qp_ + tried) % qps_.size()]->has_data(now_ns)) ++tried;
    if (tried == qps_.size()) {
      line_free_ns_ = std::max(line_free_ns_, now_ns);
      return;
    }
    const std::size_t chosen = (next_qp_ + tried) % qps_.size();
    queue(qps_[chosen]->take_data(now_ns));
    next_qp_ = (chosen + 1) % qps_.size();
  }
}

}  // namespace te::lab
