// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <optional>

#include "lab/endpoint/message_shape.h"

namespace te::lab {

/// The sending half of a reliable connection: a window of packets, go-back-N on NAK and on timeout.
/// InfiniBand Architecture Specification 1.3, 9.7.5 and 9.9.2.
class Requester {
 public:
  struct Options {
    std::uint32_t first_psn = 0;
    std::uint32_t window_packets = 16;
    std::int64_t timeout_ns = 250'000'000;
    int retry_limit = 7;  ///< timeouts in a row before the QP goes to the error state
  };
  struct Counters {
    std::uint64_t packets_sent = 0;  ///< retransmitted ones included
    std::uint64_t retransmitted = 0;
    std::uint64_t naks = 0;  ///< received
    std::uint64_t timeouts = 0;
    std::uint64_t messages_completed = 0;
    std::uint64_t messages_lost = 0;  ///< begun, never acknowledged, QP in error
  };

  Requester(const MessageShape& shape, const Options& options);

  [[nodiscard]] bool can_send() const;
  /// The next packet to put on the wire; can_send() must hold.
  Segment send(std::int64_t now_ns);
  /// Everything up to `psn` has arrived. An answer to nothing outstanding is ignored.
  void on_ack(std::uint32_t psn, std::int64_t now_ns);
  /// `psn` is the first packet that has not arrived.
  void on_sequence_nak(std::uint32_t psn, std::int64_t now_ns);
  /// Any other NAK: the connection is broken.
  void on_fatal_nak();
  void on_time(std::int64_t now_ns);
  /// Begins no more messages; what is begun is sent to its end.
  void stop();
  [[nodiscard]] bool is_drained() const;
  [[nodiscard]] bool is_broken() const { return broken_; }
  [[nodiscard]] const Counters& counters() const { return counters_; }
  [[nodiscard]] std::uint32_t next_psn() const { return psn_of(sent_end_); }

 private:
  [[nodiscard]] std::uint32_t psn_of(std::uint64_t index) const;
  /// Index that `psn` means, seen from the oldest outstanding packet; nullopt when it is older or was never sent.
  [[nodiscard]] std::optional<std::uint64_t> outstanding_index(std::uint32_t psn) const;
  void advance_to(std::uint64_t index, std::int64_t now_ns);
  void break_connection();

  MessageShape shape_;
  Options options_;
  std::uint64_t acknowledged_ = 0;  ///< all below have arrived
  std::uint64_t next_ = 0;          ///< sent next; behind sent_end_ while retransmitting
  std::uint64_t sent_end_ = 0;      ///< all below have been sent at least once
  std::uint64_t recovery_end_ = 0;  ///< sent_end_ at the last go-back
  std::uint64_t end_ = UINT64_MAX;  ///< where sending stops
  std::int64_t deadline_ns_ = 0;    ///< of the retransmission timer
  int timeouts_in_a_row_ = 0;
  bool broken_ = false;
  Counters counters_;
};

}  // namespace te::lab
