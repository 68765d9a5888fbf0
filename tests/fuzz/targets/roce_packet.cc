// SPDX-License-Identifier: Apache-2.0
// What parses is built again to a packet that parses to the same fields.
#include "common/roce/packet.h"

#include <cstdint>
#include <span>

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  const std::span<const std::uint8_t> bytes(data, size);
  (void)te::roce::has_valid_icrc(bytes);
  const auto packet = te::roce::parse(bytes);
  if (!packet) return 0;
  const auto built = te::roce::build(*packet);
  TE_CHECK(te::roce::has_valid_icrc(built), "built packet has a wrong ICRC");
  const auto again = te::roce::parse(built);
  TE_CHECK(again.ok(), again.ok() ? "" : again.error().message);
  TE_CHECK(again->destination_qpn == packet->destination_qpn && again->psn == packet->psn &&
               again->payload.size() == packet->payload.size() && again->source_port == packet->source_port,
           "fields changed on the way");
  return 0;
}
