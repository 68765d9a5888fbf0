// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <linux/bpf.h>

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "common/os/unique_fd.h"
#include "tests/bpf/datapath/bpf_fixture.h"

namespace te::agent {

/// BPF_TCX_INGRESS and _EGRESS, which older headers lack.
inline constexpr auto kTcxIngress = static_cast<bpf_attach_type>(46);
inline constexpr auto kTcxEgress = static_cast<bpf_attach_type>(47);

/// A network namespace of this process alone with two Ethernet interfaces wired to each other; it goes with the
/// process. Frames go in and out by packet sockets, so they pass the hooks of both interfaces and no IP stack.
class VethPair {
 public:
  static constexpr const char* kNear = "tebpf0";
  static constexpr const char* kFar = "tebpf1";

  /// Moves the calling thread into the new namespace. Check ok().
  VethPair();
  [[nodiscard]] bool ok() const { return static_cast<bool>(near_socket_) && static_cast<bool>(far_socket_); }
  [[nodiscard]] std::uint32_t near_ifindex() const { return near_ifindex_; }
  [[nodiscard]] std::uint32_t far_ifindex() const { return far_ifindex_; }

  /// Sends from the near interface and returns what comes out of the far one; nothing after one second.
  std::optional<Bytes> pass(const Bytes& frame) const;
  /// The same, with all but `linear_bytes` of the frame in page fragments.
  std::optional<Bytes> pass_paged(const Bytes& frame, std::uint16_t linear_bytes) const;

 private:
  [[nodiscard]] std::optional<Bytes> receive() const;

  UniqueFd near_socket_;
  UniqueFd near_paged_socket_;
  UniqueFd far_socket_;
  std::uint32_t near_ifindex_ = 0;
  std::uint32_t far_ifindex_ = 0;
};

/// Runs a command; true when it exits with 0.
bool succeeds(const std::string& command);

}  // namespace te::agent
