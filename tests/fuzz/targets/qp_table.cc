// SPDX-License-Identifier: Apache-2.0
// Every queue pair that is read has QPNs of 24 bits; every error names its source.
#include "host-agent/core/qp_table.h"

#include <cstdint>
#include <string_view>

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  const auto table = te::agent::parse_qp_table({reinterpret_cast<const char*>(data), size}, "fuzz.json");
  if (!table) {
    TE_CHECK(table.error().message.starts_with("fuzz.json: "), table.error().message);
    return 0;
  }
  for (const te::agent::QueuePair& qp : *table) {
    TE_CHECK(qp.local_qpn <= 0xFFFFFF && qp.remote_qpn <= 0xFFFFFF, "QPN of more than 24 bits");
  }
  return 0;
}
