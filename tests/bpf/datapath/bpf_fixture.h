// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <gtest/gtest.h>

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "common/os/unique_fd.h"
#include "common/roce/packet.h"
#include "host-agent/io/bpf_datapath.h"

namespace te::agent {

using Bytes = std::vector<std::uint8_t>;

inline constexpr std::size_t kEthernetBytes = 14;
inline constexpr std::uint16_t kPort = 0xE0A5;        // that flows are steered to
inline constexpr std::uint32_t kLoopbackIfindex = 1;  // the interface that BPF_PROG_TEST_RUN gives a frame

/// An Ethernet frame of an IP packet.
Bytes frame_of(const Bytes& ip);
/// The packet that the tests start from: WRITE_MIDDLE, 1024 bytes, QPN 0x123456, PSN 100, source port 0xC111.
roce::Packet plain_packet(bool v6);
FlowKey key_of(const roce::Packet& packet, std::uint32_t ifindex = kLoopbackIfindex);
/// Fills in a UDP checksum over the whole datagram, for IPv4 packets too.
void fill_udp_checksum(Bytes& ip);

/// A bpffs of the test's own, in a mount namespace of its own, so that nothing is left even after a crash, and a
/// datapath pinned there. Skips without root.
class BpfFixture : public testing::Test {
 public:
  ~BpfFixture() override;

 protected:
  void SetUp() override;

  struct Context {  // fields of __sk_buff that a test can set
    std::uint32_t mark = 0;
    std::uint32_t gso_size = 0;
  };
  /// Runs a frame through the egress or ingress program; returns the frame after it. Fails the test unless the program
  /// says "next".
  Bytes run(FlowDirection direction, const Bytes& frame, const Context& context);
  Bytes run(FlowDirection direction, const Bytes& frame) { return run(direction, frame, Context{}); }
  Bytes send(const roce::Packet& packet) { return run(FlowDirection::kEgress, frame_of(roce::build(packet))); }
  Bytes receive(const roce::Packet& packet) { return run(FlowDirection::kIngress, frame_of(roce::build(packet))); }

  /// The only flow in the kernel; fails the test when there are more or none.
  FlowSample only_flow();
  std::vector<FlowSample> flows();
  std::vector<KernelEvent> events();
  /// Opens the datapath anew, as the next agent does.
  void reopen();

  [[nodiscard]] std::string pin_directory() const { return bpffs_ + "/roce-te/host"; }
  BpfDatapath& datapath() { return *datapath_; }
  void close_datapath() { datapath_.reset(); }

 private:
  std::string bpffs_;
  std::optional<BpfDatapath> datapath_;
  UniqueFd programs_[2];  // by FlowDirection
};

}  // namespace te::agent
