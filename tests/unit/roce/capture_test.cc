// SPDX-License-Identifier: Apache-2.0
// Every packet of captures of real rdma_rxe traffic (see tests/data/roce).
#include <gtest/gtest.h>

#include <cstring>
#include <fstream>
#include <iterator>
#include <map>
#include <string>
#include <vector>

#include "common/roce/icrc.h"
#include "common/roce/packet.h"

namespace te::roce {
namespace {

constexpr std::size_t kEthernetBytes = 14;
constexpr std::size_t kPacketsPerCapture = 150;

/// IP packets of a little-endian classic pcap file with Ethernet frames.
std::vector<std::vector<std::uint8_t>> ip_packets_of(const std::string& name) {
  std::ifstream file(std::string(TE_ROCE_CAPTURES) + "/" + name, std::ios::binary);
  const std::vector<char> bytes{std::istreambuf_iterator<char>(file), {}};
  constexpr std::size_t kFileHeaderBytes = 24;
  constexpr std::size_t kRecordHeaderBytes = 16;
  std::vector<std::vector<std::uint8_t>> packets;
  for (std::size_t at = kFileHeaderBytes; at + kRecordHeaderBytes <= bytes.size();) {
    std::uint32_t size = 0;
    std::memcpy(&size, bytes.data() + at + 8, sizeof size);
    at += kRecordHeaderBytes;
    if (size <= kEthernetBytes || at + size > bytes.size()) break;
    packets.emplace_back(bytes.data() + at + kEthernetBytes, bytes.data() + at + size);
    at += size;
  }
  return packets;
}

class Capture : public testing::TestWithParam<const char*> {
 protected:
  void SetUp() override {
    packets_ = ip_packets_of(GetParam());
    ASSERT_EQ(packets_.size(), kPacketsPerCapture);
  }
  std::vector<std::vector<std::uint8_t>> packets_;
};

INSTANTIATE_TEST_SUITE_P(RdmaRxe, Capture, testing::Values("write.pcap", "read.pcap"), [](const auto& row) {
  const std::string file = row.param;
  return file.substr(0, file.find('.'));
});

TEST_P(Capture, HasValidIcrcs) {
  for (const auto& ip : packets_) EXPECT_TRUE(has_valid_icrc(ip));
}

TEST_P(Capture, IsRebuiltByteForByte) {
  for (const auto& ip : packets_) {
    const auto packet = parse(ip);
    ASSERT_TRUE(packet) << packet.error().message;
    EXPECT_EQ(build(*packet), ip);
  }
}

TEST_P(Capture, IsMadeOfThirtyMessagesOf4096Bytes) {
  std::size_t payload_bytes = 0;
  std::map<Opcode, int> messages;
  for (const auto& ip : packets_) {
    const Packet packet = parse(ip).value();
    payload_bytes += packet.payload.size();
    ++messages[packet.opcode];
  }
  EXPECT_EQ(payload_bytes, 30U * 4096U);
  const bool write = std::string(GetParam()) == "write.pcap";
  EXPECT_EQ(messages[write ? Opcode::kWriteFirst : Opcode::kReadResponseFirst], 30);
  EXPECT_EQ(messages[write ? Opcode::kAcknowledge : Opcode::kReadRequest], 30);
}

}  // namespace
}  // namespace te::roce
