// SPDX-License-Identifier: Apache-2.0
// A link message that is read names an interface.
#include "common/netlink/link_message.h"

#include <cstdint>
#include <span>

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  const auto link = te::netlink::parse_link_message(std::span<const std::uint8_t>(data, size));
  if (!link) return 0;
  TE_CHECK(link->ifindex != 0 && !link->name.empty(), "a link without index or name");
  return 0;
}
