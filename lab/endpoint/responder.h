// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <vector>

#include "common/roce/packet.h"

namespace te::lab {

/// The receiving half of a reliable connection: takes packets in order of their PSN and no other; one NAK a gap.
/// InfiniBand Architecture Specification 1.3, 9.7.5.1 and 9.7.5.2.
class Responder {
 public:
  struct Answer {
    std::uint8_t syndrome = roce::kSyndromeAck;
    std::uint32_t psn = 0;
    std::uint32_t msn = 0;
  };
  struct Counters {
    std::uint64_t goodput_bytes = 0;  ///< message bytes taken in order
    std::uint64_t messages_received = 0;
    std::uint64_t naks = 0;          ///< sent, sequence errors
    std::uint64_t duplicates = 0;    ///< packets
    std::uint64_t out_of_order = 0;  ///< packets thrown away behind a gap
    std::uint64_t invalid = 0;       ///< opcodes that do not follow each other
  };

  /// Acknowledges where asked to, and at the latest every `ack_every` packets.
  Responder(std::uint32_t first_psn, std::uint32_t ack_every) : expected_psn_(first_psn), ack_every_(ack_every) {}

  /// A SEND or WRITE packet.
  void on_request(const roce::Packet& packet);
  /// Hands over the answers that are due; acknowledgements without a NAK between them are one.
  std::vector<Answer> take_answers();
  [[nodiscard]] const Counters& counters() const { return counters_; }
  [[nodiscard]] std::uint32_t expected_psn() const { return expected_psn_; }

 private:
  void accept(const roce::Packet& packet);
  void acknowledge();
  void refuse(std::uint8_t syndrome);

  std::uint32_t expected_psn_;
  std::uint32_t ack_every_;
  std::uint32_t msn_ = 0;
  std::uint32_t unacknowledged_ = 0;
  bool gap_reported_ = false;
  bool inside_message_ = false;
  std::vector<Answer> answers_;
  Counters counters_;
};

}  // namespace te::lab
