// SPDX-License-Identifier: Apache-2.0
#include "lab/endpoint/responder.h"

#include <utility>

#include "common/roce/source_port.h"

namespace te::lab {
namespace {

using roce::Opcode;

constexpr std::uint8_t kSyndromeNakInvalidRequest = 0x61;

bool begins_message(Opcode opcode) {
  switch (opcode) {
    case Opcode::kSendFirst:
    case Opcode::kSendOnly:
    case Opcode::kSendOnlyImmediate:
    case Opcode::kWriteFirst:
    case Opcode::kWriteOnly:
    case Opcode::kWriteOnlyImmediate:
      return true;
    default:
      return false;
  }
}

bool ends_message(Opcode opcode) {
  switch (opcode) {
    case Opcode::kSendFirst:
    case Opcode::kSendMiddle:
    case Opcode::kWriteFirst:
    case Opcode::kWriteMiddle:
      return false;
    default:
      return true;
  }
}

}  // namespace

void Responder::on_request(const roce::Packet& packet) {
  const std::uint32_t ahead = (packet.psn - expected_psn_) & roce::kPsnMask;
  if (ahead == 0) {
    accept(packet);
  } else if (ahead < roce::kHalfPsnSpace) {
    ++counters_.out_of_order;
    if (gap_reported_) return;
    gap_reported_ = true;
    ++counters_.naks;
    refuse(roce::kSyndromeNakSequence);
  } else {
    ++counters_.duplicates;
    acknowledge();
  }
}

void Responder::accept(const roce::Packet& packet) {
  if (begins_message(packet.opcode) == inside_message_) {
    ++counters_.invalid;
    refuse(kSyndromeNakInvalidRequest);
    return;
  }
  gap_reported_ = false;
  expected_psn_ = (expected_psn_ + 1) & roce::kPsnMask;
  counters_.goodput_bytes += packet.payload.size();
  inside_message_ = !ends_message(packet.opcode);
  if (!inside_message_) {
    msn_ = (msn_ + 1) & roce::kPsnMask;
    ++counters_.messages_received;
  }
  if (++unacknowledged_ >= ack_every_ || packet.ack_request) acknowledge();
}

void Responder::acknowledge() {
  unacknowledged_ = 0;
  const Answer answer{roce::kSyndromeAck, (expected_psn_ - 1) & roce::kPsnMask, msn_};
  if (!answers_.empty() && answers_.back().syndrome == roce::kSyndromeAck) {
    answers_.back() = answer;
  } else {
    answers_.push_back(answer);
  }
}

void Responder::refuse(std::uint8_t syndrome) {
  unacknowledged_ = 0;
  answers_.push_back({syndrome, expected_psn_, msn_});
}

std::vector<Responder::Answer> Responder::take_answers() { return std::exchange(answers_, {}); }

}  // namespace te::lab
