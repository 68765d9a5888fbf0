// SPDX-License-Identifier: Apache-2.0
// What is read of a router's answer is of the family that its reader is for.
#include <cstdint>
#include <span>

#include "host-agent/core/icmp_quote.h"

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  const std::span<const std::uint8_t> bytes(data, size);
  if (const auto v4 = te::agent::parse_icmpv4_answer(bytes)) {
    TE_CHECK(v4->responder.is_v4() && v4->quoted.source.is_v4() && v4->quoted.destination.is_v4(), "not IPv4");
  }
  if (const auto v6 = te::agent::parse_icmpv6_answer(bytes)) {
    TE_CHECK(v6->quoted.source.is_v6() && v6->quoted.destination.is_v6(), "not IPv6");
    TE_CHECK(!v6->quoted.psn || *v6->quoted.psn <= 0xFFFFFF, "PSN of more than 24 bits");
  }
  return 0;
}
