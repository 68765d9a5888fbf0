// SPDX-License-Identifier: Apache-2.0
#include "lab/endpoint/requester.h"

#include <algorithm>

#include "common/base/result.h"
#include "common/roce/source_port.h"

namespace te::lab {
Requester::Requester(const MessageShape& shape, const Options& options) : shape_(shape), options_(options) {}

std::uint32_t Requester::psn_of(std::uint64_t index) const {
  return static_cast<std::uint32_t>(options_.first_psn + index) & roce::kPsnMask;
}

std::optional<std::uint64_t> Requester::outstanding_index(std::uint32_t psn) const {
  const std::uint32_t ahead = (psn - psn_of(acknowledged_)) & roce::kPsnMask;
  if (ahead >= roce::kHalfPsnSpace || acknowledged_ + ahead >= sent_end_) return std::nullopt;
  return acknowledged_ + ahead;
}

bool Requester::can_send() const { return !broken_ && next_ < end_ && next_ < acknowledged_ + options_.window_packets; }

Segment Requester::send(std::int64_t now_ns) {
  TE_CHECK(can_send(), "a packet was taken from a requester that has none");
  Segment segment = shape_.segment(next_);
  segment.psn = psn_of(next_);
  // Asked for at the end of a message, and where the window would otherwise close without an answer under way.
  segment.ack_request = segment.ends_message || next_ + 1 == acknowledged_ + options_.window_packets;
  if (acknowledged_ == sent_end_) deadline_ns_ = now_ns + options_.timeout_ns;
  if (next_ < sent_end_) ++counters_.retransmitted;
  ++next_;
  ++counters_.packets_sent;
  sent_end_ = std::max(sent_end_, next_);
  return segment;
}

void Requester::advance_to(std::uint64_t index, std::int64_t now_ns) {
  if (index <= acknowledged_) return;
  const std::uint32_t packets = shape_.packets_per_message();
  counters_.messages_completed += index / packets - acknowledged_ / packets;
  acknowledged_ = index;
  next_ = std::max(next_, index);
  deadline_ns_ = now_ns + options_.timeout_ns;
  timeouts_in_a_row_ = 0;
}

void Requester::on_ack(std::uint32_t psn, std::int64_t now_ns) {
  if (const auto index = outstanding_index(psn)) advance_to(*index + 1, now_ns);
}

void Requester::on_sequence_nak(std::uint32_t psn, std::int64_t now_ns) {
  const auto index = outstanding_index(psn);
  if (!index) return;
  ++counters_.naks;
  advance_to(*index, now_ns);
  // A second NAK of one recovery speaks of packets that were on their way before it; their repeats are sent, or next.
  if (*index < recovery_end_) return;
  next_ = *index;
  recovery_end_ = sent_end_;
}

void Requester::break_connection() {
  if (broken_) return;
  broken_ = true;
  const std::uint32_t packets = shape_.packets_per_message();
  counters_.messages_lost += (sent_end_ + packets - 1) / packets - acknowledged_ / packets;
}

void Requester::on_fatal_nak() { break_connection(); }

void Requester::on_time(std::int64_t now_ns) {
  if (broken_ || acknowledged_ == sent_end_ || now_ns < deadline_ns_) return;
  ++counters_.timeouts;
  if (++timeouts_in_a_row_ > options_.retry_limit) {
    break_connection();
    return;
  }
  next_ = acknowledged_;
  recovery_end_ = acknowledged_;
  deadline_ns_ = now_ns + options_.timeout_ns;
}

void Requester::stop() {
  const std::uint32_t packets = shape_.packets_per_message();
  end_ = std::min(end_, (sent_end_ + packets - 1) / packets * packets);
}

bool Requester::is_drained() const { return broken_ || (end_ != UINT64_MAX && acknowledged_ >= end_); }

}  // namespace te::lab
