// SPDX-License-Identifier: Apache-2.0
#include "host-agent/io/link_watcher.h"

#include <gtest/gtest.h>

#include "tests/unit/agent/fake_controller.h"

namespace te::agent {
namespace {

/// A watcher of the loopback interface, and what it sent.
class LinkWatcherTest : public testing::Test {
 protected:
  void SetUp() override {
    const auto opened = watcher_.open();
    ASSERT_TRUE(opened) << opened.error().message;
    watcher_.start();
  }
  ~LinkWatcherTest() override {
    watcher_.stop();
    io_.restart();
    io_.run_for(std::chrono::seconds(2));
  }

  boost::asio::io_context io_{1};
  std::vector<v1::LinkUpdate> sent_;
  bool takes_ = true;
  const std::vector<NicName> nics_{{.interface = "lo"}};
  NetNamespaces namespaces_;
  LinkWatcher watcher_{io_, nics_, namespaces_, [this](const v1::LinkUpdate& update) {
                         if (takes_) sent_.push_back(update);
                         return takes_;
                       }};
};

TEST_F(LinkWatcherTest, NewSessionGetsAllLinksAtOnce) {
  watcher_.session_began();
  ASSERT_EQ(sent_.size(), 1U);
  EXPECT_TRUE(sent_[0].complete());
  ASSERT_EQ(sent_[0].links_size(), 1);
  EXPECT_EQ(sent_[0].links(0).interface(), "lo");
  EXPECT_GT(sent_[0].links(0).ifindex(), 0U);
}

TEST_F(LinkWatcherTest, AllLinksAreToldEverySecond) {
  const auto begin = std::chrono::steady_clock::now();
  ASSERT_TRUE(test::run_until(io_, [&] { return sent_.size() == 2; }));
  EXPECT_TRUE(sent_[0].complete());
  EXPECT_TRUE(sent_[1].complete());
  EXPECT_GE(std::chrono::steady_clock::now() - begin, std::chrono::milliseconds(1900));
}

TEST_F(LinkWatcherTest, UpdatesThatNobodyTakesAreNotCounted) {
  takes_ = false;
  watcher_.session_began();
  EXPECT_EQ(watcher_.counts().updates, 0U);
  takes_ = true;
  watcher_.session_began();
  EXPECT_EQ(watcher_.counts().updates, 1U);
}

TEST(LinkWatcher, PortHasTheNameOfTheTopologyFile) {
  boost::asio::io_context io(1);
  const std::vector<NicName> nics{{.interface = "lo", .port = "rail0"}};
  NetNamespaces namespaces(nics);
  std::vector<v1::LinkUpdate> sent;
  LinkWatcher watcher(io, nics, namespaces, [&](const v1::LinkUpdate& update) {
    sent.push_back(update);
    return true;
  });
  ASSERT_TRUE(watcher.open());
  watcher.session_began();
  ASSERT_EQ(sent.size(), 1U);
  ASSERT_EQ(sent[0].links_size(), 1);
  EXPECT_EQ(sent[0].links(0).interface(), "rail0");
  EXPECT_GT(sent[0].links(0).ifindex(), 0U);
}

TEST(LinkWatcher, NamespaceThatCannotBeEnteredLeavesTheOthersWatched) {
  boost::asio::io_context io(1);
  const std::vector<NicName> nics{{.interface = "lo"}, {.interface = "eth0", .netns = "/run/netns/te-is-not-there"}};
  NetNamespaces namespaces(nics);
  std::vector<v1::LinkUpdate> sent;
  LinkWatcher watcher(io, nics, namespaces, [&](const v1::LinkUpdate& update) {
    sent.push_back(update);
    return true;
  });
  const auto opened = watcher.open();
  ASSERT_FALSE(opened);
  EXPECT_NE(opened.error().message.find("/run/netns/te-is-not-there"), std::string::npos);
  EXPECT_NE(opened.error().message.find("restart the agent"), std::string::npos);
  EXPECT_TRUE(watcher.is_watching());
  watcher.session_began();
  ASSERT_EQ(sent.size(), 1U);
  ASSERT_EQ(sent[0].links_size(), 2);
  EXPECT_EQ(watcher.present(), 1U);
}

TEST(LinkWatcher, StopEndsItsLoops) {
  boost::asio::io_context io(1);
  NetNamespaces namespaces;
  LinkWatcher watcher(io, {}, namespaces, [](const v1::LinkUpdate&) { return true; });
  ASSERT_TRUE(watcher.open());
  watcher.start();
  io.run_for(std::chrono::milliseconds(10));
  watcher.stop();
  io.restart();
  io.run_for(std::chrono::seconds(10));
  EXPECT_TRUE(io.stopped());
}

}  // namespace
}  // namespace te::agent
