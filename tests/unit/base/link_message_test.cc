// SPDX-License-Identifier: Apache-2.0
#include "common/netlink/link_message.h"

#include <gtest/gtest.h>
#include <linux/if.h>
#include <linux/if_link.h>
#include <linux/rtnetlink.h>

#include <algorithm>
#include <cstring>

#include "common/netlink/link_socket.h"

namespace te::netlink {
namespace {

using Message = std::vector<std::uint8_t>;

template <class T>
void append(Message& message, const T& value) {
  const auto* bytes = reinterpret_cast<const std::uint8_t*>(&value);
  message.insert(message.end(), bytes, bytes + sizeof(value));
}

void append(Message& message, std::uint16_t type, const Message& payload) {
  append(message, nlattr{static_cast<std::uint16_t>(sizeof(nlattr) + payload.size()), type});
  message.insert(message.end(), payload.begin(), payload.end());
  message.resize(NLA_ALIGN(message.size()));
}

template <class T>
Message bytes_of(const T& value) {
  Message made;
  append(made, value);
  return made;
}

Message header(int ifindex, unsigned flags) {
  ifinfomsg raw{};
  raw.ifi_index = ifindex;
  raw.ifi_flags = flags;
  return bytes_of(raw);
}

Message text(const char* value) { return {value, value + std::strlen(value) + 1}; }

TEST(LinkMessage, TheLowerInterfaceIsOfTheSameNamespaceOrNone) {
  Message message = header(7, IFF_UP);
  append(message, IFLA_IFNAME, text("eth2.100"));
  append(message, IFLA_LINK, bytes_of(std::uint32_t{3}));
  EXPECT_EQ(parse_link_message(message)->lower, 3U);
  append(message, IFLA_LINK_NETNSID, bytes_of(std::int32_t{0}));
  EXPECT_EQ(parse_link_message(message)->lower, 0U);
}

TEST(LinkMessage, ReadsAnInterface) {
  Message message = header(7, IFF_UP);
  append(message, IFLA_IFNAME, text("eth2"));
  append(message, IFLA_MTU, bytes_of(std::uint32_t{4096}));
  append(message, IFLA_CARRIER, {1});
  append(message, IFLA_OPERSTATE, {IF_OPER_UP});
  append(message, IFLA_CARRIER_CHANGES, bytes_of(std::uint32_t{3}));
  append(message, IFLA_MASTER, bytes_of(std::uint32_t{9}));
  Message kind;
  append(kind, IFLA_INFO_KIND, text("veth"));
  append(message, IFLA_LINKINFO | NLA_F_NESTED, kind);
  rtnl_link_stats64 counters{};
  counters.rx_packets = 1;
  counters.tx_packets = 2;
  counters.rx_bytes = 3;
  counters.tx_bytes = 4;
  counters.rx_errors = 5;
  counters.tx_errors = 6;
  counters.rx_dropped = 7;
  counters.tx_dropped = 8;
  append(message, IFLA_STATS64, bytes_of(counters));
  const auto link = parse_link_message(message);
  ASSERT_TRUE(link) << link.error().message;
  EXPECT_EQ(*link, (LinkMessage{7, "eth2", true, true, true, 4096, 3, 9, 0, "veth", {1, 2, 3, 4, 5, 6, 7, 8}}));
}

TEST(LinkMessage, WithoutCarrierIsNotOperational) {
  Message message = header(7, IFF_UP);
  append(message, IFLA_IFNAME, text("eth2"));
  append(message, IFLA_CARRIER, {0});
  append(message, IFLA_OPERSTATE, {IF_OPER_LOWERLAYERDOWN});
  const auto link = parse_link_message(message);
  ASSERT_TRUE(link) << link.error().message;
  EXPECT_TRUE(link->up);
  EXPECT_FALSE(link->carrier);
  EXPECT_FALSE(link->operational);
}

TEST(LinkMessage, WhatIsMissingOrOfAnotherSizeIsAnError) {
  EXPECT_FALSE(parse_link_message({}).ok());
  EXPECT_FALSE(parse_link_message(header(7, 0)).ok()) << "no name";
  Message no_index = header(0, 0);
  append(no_index, IFLA_IFNAME, text("eth2"));
  EXPECT_FALSE(parse_link_message(no_index).ok());
  for (const std::uint16_t type : {IFLA_MTU, IFLA_CARRIER, IFLA_OPERSTATE, IFLA_CARRIER_CHANGES, IFLA_STATS64}) {
    Message message = header(7, 0);
    append(message, IFLA_IFNAME, text("eth2"));
    append(message, type, {1, 2, 3});
    EXPECT_FALSE(parse_link_message(message).ok()) << type;
  }
}

TEST(LinkSocket, ListsTheLoopbackInterface) {
  const auto links = read_links();
  ASSERT_TRUE(links) << links.error().message;
  const auto loopback = std::ranges::find(*links, "lo", &LinkMessage::name);
  ASSERT_NE(loopback, links->end());
  EXPECT_GT(loopback->mtu_bytes, 0U);
}

}  // namespace
}  // namespace te::netlink
