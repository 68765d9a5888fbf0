// SPDX-License-Identifier: Apache-2.0
// Every queue pair that is read has QPNs of 24 bits, and there are no more of them than the bytes can hold.
#include "host-agent/core/rdma_netlink.h"

#include <cstdint>
#include <span>

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  const std::span<const std::uint8_t> bytes(data, size);
  if (const auto device = te::agent::parse_rdma_device(bytes)) TE_CHECK(!device->name.empty(), "device without a name");
  const auto table = te::agent::parse_rdma_queue_pairs(bytes);
  if (!table) return 0;
  TE_CHECK(table->size() <= size / 4, "more queue pairs than attributes");
  for (const te::agent::QueuePair& qp : *table) {
    TE_CHECK(qp.local_qpn <= 0xFFFFFF && qp.remote_qpn <= 0xFFFFFF, "QPN of more than 24 bits");
  }
  return 0;
}
