// SPDX-License-Identifier: Apache-2.0
#include "host-agent/core/rdma_netlink.h"

#include <gtest/gtest.h>
#include <linux/netlink.h>
#include <rdma/rdma_netlink.h>

#include <cstring>

namespace te::agent {
namespace {

using Bytes = std::vector<std::uint8_t>;

Bytes attribute(std::uint16_t type, const Bytes& payload) {
  const nlattr header{static_cast<std::uint16_t>(sizeof(nlattr) + payload.size()), type};
  Bytes made(sizeof(header));
  std::memcpy(made.data(), &header, sizeof(header));
  made.insert(made.end(), payload.begin(), payload.end());
  made.resize(NLA_ALIGN(made.size()));
  return made;
}

Bytes number(std::uint16_t type, std::uint32_t value) {
  Bytes payload(sizeof(value));
  std::memcpy(payload.data(), &value, sizeof(value));
  return attribute(type, payload);
}

Bytes text(std::uint16_t type, const std::string& value) {
  Bytes payload(value.begin(), value.end());
  payload.push_back(0);
  return attribute(type, payload);
}

Bytes operator+(Bytes left, const Bytes& right) {
  left.insert(left.end(), right.begin(), right.end());
  return left;
}

Bytes queue_pair(std::uint32_t local, std::uint32_t remote, std::uint8_t type, std::uint8_t state) {
  return attribute(RDMA_NLDEV_ATTR_RES_QP_ENTRY | NLA_F_NESTED,
                   number(RDMA_NLDEV_ATTR_RES_LQPN, local) + number(RDMA_NLDEV_ATTR_RES_RQPN, remote) +
                       attribute(RDMA_NLDEV_ATTR_RES_TYPE, {type}) + attribute(RDMA_NLDEV_ATTR_RES_STATE, {state}) +
                       number(RDMA_NLDEV_ATTR_RES_PID, 1));
}

Bytes dump(const Bytes& entries) {
  return number(RDMA_NLDEV_ATTR_DEV_INDEX, 3) + text(RDMA_NLDEV_ATTR_DEV_NAME, "rxe0") +
         attribute(RDMA_NLDEV_ATTR_RES_QP | NLA_F_NESTED, entries);
}

constexpr std::uint8_t kRc = 2;
constexpr std::uint8_t kUd = 4;
constexpr std::uint8_t kInit = 1;
constexpr std::uint8_t kRts = 3;

TEST(RdmaNetlink, ReadsADevice) {
  const auto device =
      parse_rdma_device(number(RDMA_NLDEV_ATTR_DEV_INDEX, 3) + text(RDMA_NLDEV_ATTR_DEV_NAME, "mlx5_0"));
  ASSERT_TRUE(device) << device.error().message;
  EXPECT_EQ(device->index, 3U);
  EXPECT_EQ(device->name, "mlx5_0");
}

TEST(RdmaNetlink, DeviceWithoutIndexIsAnError) {
  EXPECT_FALSE(parse_rdma_device(text(RDMA_NLDEV_ATTR_DEV_NAME, "mlx5_0")).ok());
}

TEST(RdmaNetlink, ReadsQueuePairsOfADump) {
  const auto table = parse_rdma_queue_pairs(dump(queue_pair(17, 18, kRc, kRts) + queue_pair(19, 20, kRc, kRts)));
  ASSERT_TRUE(table) << table.error().message;
  EXPECT_EQ(*table, (std::vector<QueuePair>{{"rxe0", 17, 18}, {"rxe0", 19, 20}}));
}

TEST(RdmaNetlink, LeavesOutWhatIsNotConnected) {
  const auto table = parse_rdma_queue_pairs(dump(queue_pair(17, 18, kUd, kRts) + queue_pair(19, 20, kRc, kInit)));
  ASSERT_TRUE(table) << table.error().message;
  EXPECT_TRUE(table->empty());
}

TEST(RdmaNetlink, MessageWithoutQueuePairsIsAnEmptyTable) {
  EXPECT_TRUE(parse_rdma_queue_pairs(number(RDMA_NLDEV_ATTR_DEV_INDEX, 3))->empty());
}

TEST(RdmaNetlink, WrongSizeOfANumberIsAnError) {
  const Bytes entry = attribute(RDMA_NLDEV_ATTR_RES_QP_ENTRY, attribute(RDMA_NLDEV_ATTR_RES_LQPN, {1, 2}));
  const auto table = parse_rdma_queue_pairs(dump(entry));
  ASSERT_FALSE(table);
  EXPECT_EQ(table.error().message, "RES_LQPN has 2 bytes, expected 4");
}

TEST(RdmaNetlink, LengthBeyondTheMessageIsAnError) {
  Bytes message = dump(queue_pair(17, 18, kRc, kRts));
  message[0] = 0xFF;
  message[1] = 0xFF;
  EXPECT_FALSE(parse_rdma_queue_pairs(message).ok());
}

TEST(RdmaNetlink, LengthOfZeroIsAnErrorNotALoop) {
  Bytes message = dump(queue_pair(17, 18, kRc, kRts));
  message[0] = 0;
  message[1] = 0;
  EXPECT_FALSE(parse_rdma_queue_pairs(message).ok());
}

TEST(RdmaNetlink, EveryCutIsSurvived) {
  const Bytes whole = dump(queue_pair(17, 18, kRc, kRts));
  for (std::size_t length = 0; length < whole.size(); ++length) {
    const auto table = parse_rdma_queue_pairs(std::span(whole).first(length));
    EXPECT_TRUE(!table || table->empty()) << length;
  }
}

}  // namespace
}  // namespace te::agent
