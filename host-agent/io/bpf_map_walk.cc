// SPDX-License-Identifier: Apache-2.0
#include "host-agent/io/bpf_map_walk.h"

#include <bpf/bpf.h>

#include <cerrno>
#include <vector>

#include "common/os/file.h"

namespace te::agent {

Result<void> for_each_entry(int map_fd, std::size_t key_bytes, std::size_t value_bytes, const TakeEntry& take) {
  std::uint32_t batch = 1024;
  std::vector<std::uint8_t> keys(batch * key_bytes);
  std::vector<std::uint8_t> values(batch * value_bytes);
  std::uint32_t position = 0;
  bool first = true;
  while (true) {
    std::uint32_t count = batch;
    std::uint32_t next = 0;
    const int failed =
        bpf_map_lookup_batch(map_fd, first ? nullptr : &position, &next, keys.data(), values.data(), &count, nullptr);
    if (failed != 0 && errno == ENOSPC) {  // one hash bucket holds more than the batch
      batch *= 2;
      keys.resize(batch * key_bytes);
      values.resize(batch * value_bytes);
      continue;
    }
    if (failed != 0 && errno != ENOENT) return errno_error("read the flow map");
    for (std::uint32_t i = 0; i < count; ++i) {
      take(std::span(keys).subspan(i * key_bytes, key_bytes), std::span(values).subspan(i * value_bytes, value_bytes));
    }
    if (failed != 0) return {};
    position = next;
    first = false;
  }
}

}  // namespace te::agent
