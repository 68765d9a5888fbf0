// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <optional>

#include "common/roce/packet.h"

namespace te::lab {

enum class Verb : std::uint8_t { kWrite, kSend };

/// One packet of an endless row of equal messages, by its place in the row.
struct Segment {
  std::uint64_t index = 0;  ///< 0, 1, 2, ... over all messages; its PSN is the first PSN plus this
  std::uint32_t psn = 0;
  roce::Opcode opcode = roce::Opcode::kSendOnly;
  std::optional<roce::Reth> reth;
  std::uint32_t payload_bytes = 0;
  bool ends_message = false;
  bool ack_request = false;
};

/// How messages are cut into packets.
class MessageShape {
 public:
  /// `message_bytes` >= 1; `path_mtu`: payload bytes of a full packet.
  MessageShape(Verb verb, std::uint32_t message_bytes, std::uint32_t path_mtu);

  [[nodiscard]] std::uint32_t packets_per_message() const { return packets_; }
  /// The packet at `index`; PSN and AckReq are left to the caller.
  [[nodiscard]] Segment segment(std::uint64_t index) const;

 private:
  Verb verb_;
  std::uint32_t message_bytes_;
  std::uint32_t path_mtu_;
  std::uint32_t packets_;
};

}  // namespace te::lab
