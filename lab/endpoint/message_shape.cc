// SPDX-License-Identifier: Apache-2.0
#include "lab/endpoint/message_shape.h"

#include <array>
#include <cstddef>

namespace te::lab {
namespace {

using roce::Opcode;

/// Where a WRITE writes: a ring of this many bytes at this address of the peer.
constexpr std::uint64_t kTargetAddress = 0x7F0000000000ULL;
constexpr std::uint64_t kTargetBytes = 1ULL << 30;
constexpr std::uint32_t kTargetKey = 0x1234;

/// By verb, then by place: first, middle, last, only.
constexpr std::array<std::array<Opcode, 4>, 2> kOpcodes{
    {{Opcode::kWriteFirst, Opcode::kWriteMiddle, Opcode::kWriteLast, Opcode::kWriteOnly},
     {Opcode::kSendFirst, Opcode::kSendMiddle, Opcode::kSendLast, Opcode::kSendOnly}}};

std::size_t place_of(bool first, bool last) {
  if (first) return last ? 3 : 0;
  return last ? 2 : 1;
}

}  // namespace

MessageShape::MessageShape(Verb verb, std::uint32_t message_bytes, std::uint32_t path_mtu)
    : verb_(verb),
      message_bytes_(message_bytes),
      path_mtu_(path_mtu),
      packets_((message_bytes + path_mtu - 1) / path_mtu) {}

Segment MessageShape::segment(std::uint64_t index) const {
  const std::uint64_t message = index / packets_;
  const auto place = static_cast<std::uint32_t>(index % packets_);
  Segment segment;
  segment.index = index;
  segment.ends_message = place + 1 == packets_;
  segment.payload_bytes = segment.ends_message ? message_bytes_ - place * path_mtu_ : path_mtu_;
  segment.opcode = kOpcodes[static_cast<std::size_t>(verb_)][place_of(place == 0, segment.ends_message)];
  if (roce::carries_reth(segment.opcode)) {
    segment.reth = roce::Reth{kTargetAddress + message * message_bytes_ % kTargetBytes, kTargetKey, message_bytes_};
  }
  return segment;
}

}  // namespace te::lab
