// SPDX-License-Identifier: Apache-2.0
#include "host-agent/io/bpf_icrc_table.h"

#include <array>

#include "common/roce/icrc.h"

namespace te::agent {
namespace {

constexpr std::uint32_t kUncoveredBytes = 2 + 4;  // of the UDP datagram: the source port itself, and the ICRC
constexpr std::size_t kPortBits = 16;

}  // namespace

std::vector<TeIcrcRow> make_icrc_rows() {
  std::vector<TeIcrcRow> rows(kTeIcrcRows);
  for (std::uint32_t index = 2; index < rows.size(); ++index) {  // no UDP datagram is shorter than 8 bytes
    std::array<std::uint32_t, kPortBits> of_bit{};
    for (std::size_t bit = 0; bit < kPortBits; ++bit) {
      of_bit[bit] = roce::icrc_delta(static_cast<std::uint16_t>(1U << bit), 4 * index - kUncoveredBytes);
    }
    for (std::size_t nibble = 0; nibble < 4; ++nibble) {
      for (std::size_t value = 0; value < 16; ++value) {
        std::uint32_t delta = 0;
        for (std::size_t bit = 0; bit < 4; ++bit) {
          if ((value >> bit & 1) != 0) delta ^= of_bit[4 * nibble + bit];
        }
        rows[index].delta[nibble][value] = delta;
      }
    }
  }
  return rows;
}

}  // namespace te::agent
