// SPDX-License-Identifier: Apache-2.0
#include "host-agent/core/link_board.h"

#include <gtest/gtest.h>

namespace te::agent {
namespace {

using netlink::LinkMessage;

LinkMessage link(std::uint32_t ifindex, const std::string& name, bool carrier = true, std::uint32_t changes = 2) {
  LinkMessage made;
  made.ifindex = ifindex;
  made.name = name;
  made.up = true;
  made.carrier = carrier;
  made.carrier_changes = changes;
  return made;
}

/// "eth0:2:carrier eth1:0:none": name, index and state of each link of an update.
std::string shown(const v1::LinkUpdate& update) {
  std::string text;
  for (const v1::LinkReport& report : update.links()) {
    text += (text.empty() ? "" : " ") + report.interface() + ":" + std::to_string(report.ifindex()) + ":" +
            (report.carrier() ? "carrier" : "none");
  }
  return text;
}

TEST(LinkBoard, CompleteUpdateListsEveryInterfaceButTheLoopback) {
  LinkBoard board({});
  board.take_all(std::vector{link(1, "lo"), link(2, "eth0"), link(3, "eth1", false)});
  EXPECT_TRUE(board.all().complete());
  EXPECT_EQ(shown(board.all()), "eth0:2:carrier eth1:3:none");
  EXPECT_EQ(board.present(), 2U);
  EXPECT_EQ(board.with_carrier(), 1U);
}

TEST(LinkBoard, CompleteUpdateListsTheInterfacesNamedAndThoseThatAreMissingByIndexZero) {
  LinkBoard board({"eth1", "eth7"});
  board.take_all(std::vector{link(2, "eth0"), link(3, "eth1")});
  EXPECT_EQ(shown(board.all()), "eth1:3:carrier eth7:0:none");
}

TEST(LinkBoard, UpdateCarriesStateAndCounters) {
  LinkBoard board({"eth0"});
  LinkMessage message = link(2, "eth0", true, 5);
  message.counters = {1, 2, 3, 4, 5, 6, 7, 8};
  board.take(message);
  const v1::LinkReport report = board.all().links(0);
  EXPECT_TRUE(report.up());
  EXPECT_EQ(report.carrier_changes(), 5U);
  EXPECT_EQ(report.received_packets(), 1U);
  EXPECT_EQ(report.sent_packets(), 2U);
  EXPECT_EQ(report.received_bytes(), 3U);
  EXPECT_EQ(report.sent_bytes(), 4U);
  EXPECT_EQ(report.received_errors(), 5U);
  EXPECT_EQ(report.sent_errors(), 6U);
  EXPECT_EQ(report.received_drops(), 7U);
  EXPECT_EQ(report.sent_drops(), 8U);
}

TEST(LinkBoard, CountersAloneAreNoChange) {
  LinkBoard board({"eth0"});
  board.take(link(2, "eth0"));
  board.mark_told();
  LinkMessage message = link(2, "eth0");
  message.counters.sent_packets = 9;
  board.take(message);
  EXPECT_EQ(shown(board.changes()), "");
  EXPECT_EQ(board.all().links(0).sent_packets(), 9U);
}

TEST(LinkBoard, LostCarrierIsAChangeUntilItIsTold) {
  LinkBoard board({});
  board.take_all(std::vector{link(2, "eth0"), link(3, "eth1")});
  board.mark_told();
  board.take(link(3, "eth1", false, 3));
  EXPECT_FALSE(board.changes().complete());
  EXPECT_EQ(shown(board.changes()), "eth1:3:none");
  EXPECT_EQ(shown(board.changes()), "eth1:3:none") << "not told yet";
  board.mark_told();
  EXPECT_EQ(shown(board.changes()), "");
  EXPECT_EQ(board.carrier_losses(), 1U);
}

TEST(LinkBoard, InterfaceShutDownIsAChange) {
  LinkBoard board({"eth0"});
  board.take(link(2, "eth0", false));
  board.mark_told();
  LinkMessage message = link(2, "eth0", false);
  message.up = false;
  board.take(message);
  EXPECT_EQ(board.changes().links_size(), 1);
}

TEST(LinkBoard, NewestStateOfAFloodIsToldOnceAndItsChangesAreCounted) {
  LinkBoard board({"eth0"});
  board.take(link(2, "eth0", true, 2));
  board.mark_told();
  for (std::uint32_t i = 0; i < 1000; ++i) board.take(link(2, "eth0", i % 2 == 1, 3 + i));
  ASSERT_EQ(board.changes().links_size(), 1);
  EXPECT_TRUE(board.changes().links(0).carrier());
  EXPECT_EQ(board.changes().links(0).carrier_changes(), 1002U);
  EXPECT_EQ(board.carrier_losses(), 500U);
}

TEST(LinkBoard, CarrierThatWentAndCameBackUnseenIsAChange) {
  LinkBoard board({"eth0"});
  board.take(link(2, "eth0", true, 2));
  board.mark_told();
  board.take(link(2, "eth0", true, 4));
  ASSERT_EQ(board.changes().links_size(), 1);
  EXPECT_EQ(board.changes().links(0).carrier_changes(), 4U);
  EXPECT_EQ(board.carrier_losses(), 1U);
}

TEST(LinkBoard, RemovedInterfaceIsToldByIndexZero) {
  for (const bool all : {false, true}) {
    LinkBoard board(all ? std::vector<std::string>() : std::vector<std::string>{"eth0"});
    board.take(link(2, "eth0"));
    board.mark_told();
    board.remove(2);
    EXPECT_EQ(shown(board.changes()), "eth0:0:none");
    EXPECT_EQ(board.carrier_losses(), 1U);
    board.mark_told();
    EXPECT_EQ(shown(board.changes()), "");
    EXPECT_EQ(shown(board.all()), all ? "" : "eth0:0:none");
  }
}

TEST(LinkBoard, InterfaceThatAListLeavesOutIsRemoved) {
  LinkBoard board({});
  board.take_all(std::vector{link(2, "eth0"), link(3, "eth1")});
  board.mark_told();
  board.take_all(std::vector{link(2, "eth0")});
  EXPECT_EQ(shown(board.changes()), "eth1:0:none");
}

TEST(LinkBoard, InterfaceMadeAnewIsAChange) {
  LinkBoard board({"eth0"});
  board.take(link(2, "eth0"));
  board.mark_told();
  board.remove(2);
  board.take(link(9, "eth0"));
  EXPECT_EQ(shown(board.changes()), "eth0:9:carrier");
}

TEST(LinkBoard, RenamedInterfaceIsGoneUnderItsOldName) {
  LinkBoard board({});
  board.take(link(2, "eth0"));
  board.mark_told();
  board.take(link(2, "wan0"));
  EXPECT_EQ(shown(board.changes()), "eth0:0:none wan0:2:carrier");
}

TEST(LinkBoard, InterfacesThatComeAndGoUntoldLeaveNothing) {
  LinkBoard board({});
  for (std::uint32_t i = 2; i < 1000; ++i) {
    board.take(link(i, "pod" + std::to_string(i)));
    board.remove(i);
  }
  EXPECT_EQ(shown(board.all()), "");
}

TEST(LinkBoard, InterfacesBeyondTheLimitAreCountedAndLeftOut) {
  LinkBoard board({});
  for (std::uint32_t i = 0; i < LinkBoard::kMostLinks + 3; ++i) board.take(link(i + 2, "v" + std::to_string(i)));
  EXPECT_EQ(board.present(), LinkBoard::kMostLinks);
  EXPECT_EQ(board.left_out(), 3U);
}

}  // namespace
}  // namespace te::agent
