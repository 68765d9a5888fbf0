// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <span>
#include <string>
#include <vector>

#include "common/base/ip_address.h"
#include "common/base/result.h"

namespace te::lab {

/// Sends whole IP packets and receives those for UDP port 4791 of one address, as a NIC would, in the calling process's
/// namespace. Nothing here blocks.
class NicSockets {
 public:
  static Result<NicSockets> open(const std::string& interface, const IpAddress& address);
  NicSockets(NicSockets&&) noexcept;
  NicSockets& operator=(NicSockets&&) noexcept;
  ~NicSockets();

  /// Hands each waiting packet, from its IP header on, to `take`; at most `limit`.
  void receive(std::size_t limit, const std::function<void(std::span<const std::uint8_t>)>& take);
  struct Outgoing {
    IpAddress destination;
    std::vector<std::uint8_t> bytes;
  };
  /// Sends from the front of `packets`; returns how many went out. Fewer than all: the interface takes no more now.
  std::size_t send(std::span<const Outgoing> packets);
  /// Packets that arrived and found no room since open().
  std::uint64_t receive_drops();

 private:
  struct State;
  explicit NicSockets(std::unique_ptr<State> state);
  std::unique_ptr<State> state_;
};

}  // namespace te::lab
