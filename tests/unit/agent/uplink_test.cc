// SPDX-License-Identifier: Apache-2.0
#include "host-agent/io/uplink.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <boost/asio/post.hpp>
#include <thread>

#include "tests/support/certificates.h"
#include "tests/unit/agent/fake_controller.h"

namespace te::agent {
namespace {

namespace asio = boost::asio;

/// An uplink of node h1 and what its handlers were told.
class UplinkTest : public testing::Test {
 protected:
  ~UplinkTest() override {
    if (uplink_) uplink_->stop();
    for (const auto& controller : controllers_) controller->close();
    io_.restart();
    io_.run_for(std::chrono::seconds(2));
  }

  test::FakeController& controller(const std::string& common_name = kControllerName) {
    controllers_.push_back(std::make_unique<test::FakeController>(io_, authority_.issue(common_name)));
    return *controllers_.back();
  }

  Uplink& connect(std::vector<std::uint16_t> ports) {
    std::vector<Endpoint> endpoints;
    for (const std::uint16_t port : ports) endpoints.push_back({"127.0.0.1", port});
    uplink_ = std::make_unique<Uplink>(
        io_, endpoints, [tls = make_tls_context(authority_.issue("h1"), TlsSide::kClient).value()] { return tls; },
        Uplink::Handlers{.hello =
                             [] {
                               v1::Hello hello;
                               hello.set_node("h1");
                               return hello;
                             },
                         .session_began = [this](const v1::HelloReply& reply) { replies_.push_back(reply); },
                         .message = [this](const v1::ControllerMessage& message) { messages_.push_back(message); },
                         .session_ended = [this] { ++ended_; }});
    asio::co_spawn(io_, uplink_->run(), asio::detached);
    return *uplink_;
  }

  bool until(const std::function<bool()>& done) { return test::run_until(io_, done); }

  asio::io_context io_{1};
  te::test::CertificateAuthority authority_;
  std::vector<std::unique_ptr<test::FakeController>> controllers_;
  std::unique_ptr<Uplink> uplink_;
  std::vector<v1::HelloReply> replies_;
  std::vector<v1::ControllerMessage> messages_;
  int ended_ = 0;
};

v1::AgentEvent event(const std::string& kind) {
  v1::AgentEvent made;
  made.set_kind(kind);
  return made;
}

TEST_F(UplinkTest, HelloOpensASession) {
  auto& server = controller();
  connect({server.port()});
  ASSERT_TRUE(until([&] { return !replies_.empty(); }));
  EXPECT_EQ(server.received[0].hello().node(), "h1");
  EXPECT_EQ(replies_[0].report_interval_ms(), 250U);
  EXPECT_TRUE(uplink_->has_session());
}

TEST_F(UplinkTest, MessagesOfTheControllerArrive) {
  auto& server = controller();
  connect({server.port()});
  ASSERT_TRUE(until([&] { return !replies_.empty(); }));
  v1::ControllerMessage message;
  message.mutable_steering()->set_revision(7);
  server.send(message);
  ASSERT_TRUE(until([&] { return !messages_.empty(); }));
  EXPECT_EQ(messages_[0].steering().revision(), 7U);
}

TEST_F(UplinkTest, CertificateOfAnotherNameIsNoController) {
  auto& impostor = controller("h2");
  Uplink& uplink = connect({impostor.port()});
  ASSERT_TRUE(until([&] { return uplink.counts().failures >= 2; }));
  EXPECT_TRUE(impostor.received.empty());
}

TEST_F(UplinkTest, CertificateOfAnotherAuthorityIsNoController) {
  te::test::CertificateAuthority stranger;
  controllers_.push_back(std::make_unique<test::FakeController>(io_, stranger.issue(kControllerName)));
  Uplink& uplink = connect({controllers_.back()->port()});
  ASSERT_TRUE(until([&] { return uplink.counts().failures >= 1; }));
  EXPECT_TRUE(controllers_.back()->received.empty());
}

TEST_F(UplinkTest, RefusalLeadsToTheNextController) {
  auto& first = controller();
  first.refuse("not now");
  auto& second = controller();
  connect({first.port(), second.port()});
  ASSERT_TRUE(until([&] { return !replies_.empty(); }));
  EXPECT_FALSE(first.received.empty());
  EXPECT_FALSE(second.received.empty());
  EXPECT_EQ(ended_, 0);
}

TEST_F(UplinkTest, SessionThatBreaksIsOpenedAnew) {
  auto& server = controller();
  Uplink& uplink = connect({server.port()});
  ASSERT_TRUE(until([&] { return !replies_.empty(); }));
  server.drop_session();
  ASSERT_TRUE(until([&] { return replies_.size() == 2; }));
  EXPECT_EQ(ended_, 1);
  EXPECT_EQ(uplink.counts().sessions, 2U);
}

TEST_F(UplinkTest, EventsWaitForASession) {
  auto& server = controller();
  Uplink& uplink = connect({server.port()});
  uplink.event(event("link_down"));
  uplink.event(event("link_up"));
  ASSERT_TRUE(until([&] { return server.received.size() == 3; }));
  EXPECT_EQ(server.received[1].event().kind(), "link_down");
  EXPECT_EQ(server.received[2].event().kind(), "link_up");
}

TEST_F(UplinkTest, EventsThatFindTheirQueueFullAreCountedAndTold) {
  auto& server = controller();
  Uplink& uplink = connect({server.port()});
  while (uplink.counts().events_lost < 3) uplink.event(event("port_changed"));
  ASSERT_TRUE(
      until([&] { return !server.received.empty() && server.received.back().event().kind() == "events_lost"; }));
  EXPECT_EQ(server.received.back().event().text(), "3 events or probe results found their queue full");
}

TEST_F(UplinkTest, StateIsNotSentWithoutASession) {
  Uplink& uplink = connect({1});
  v1::AgentMessage message;
  message.mutable_flows();
  EXPECT_FALSE(uplink.send(message));
}

TEST_F(UplinkTest, ResultsOfABrokenSessionAreDropped) {
  auto& server = controller();
  Uplink& uplink = connect({server.port()});
  ASSERT_TRUE(until([&] { return !replies_.empty(); }));
  v1::ProbeResult result;
  result.set_id(9);
  uplink.result(result);
  ASSERT_TRUE(until([&] { return server.received.size() == 2; }));
  EXPECT_EQ(server.received[1].probe_result().id(), 9U);
  server.drop_session();
  ASSERT_TRUE(until([&] { return replies_.size() == 2; }));
  EXPECT_FALSE(std::any_of(server.received.begin() + 2, server.received.end(),
                           [](const v1::AgentMessage& message) { return message.has_probe_result(); }));
}

TEST_F(UplinkTest, ControllerThatIsStuckCostsABoundedAmountOfMemory) {
  auto& server = controller();
  Uplink& uplink = connect({server.port()});
  ASSERT_TRUE(until([&] { return !replies_.empty(); }));
  server.get_stuck();
  v1::AgentMessage large;
  large.mutable_event()->set_text(std::string(100'000, 'x'));
  std::size_t taken = 0;
  // The socket buffers of the kernel take some more for a while.
  for (int refused = 0; refused < 50;) {
    io_.restart();
    io_.run_one_for(std::chrono::milliseconds(1));
    uplink.send(large) ? void(++taken) : void(++refused);
    ASSERT_LT(taken, 1000U) << "100 MB taken for a controller that reads nothing";
  }
  EXPECT_LE(uplink.queued_bytes(), Uplink::kQueueLimitBytes + large.ByteSizeLong());
  for (int i = 0; i < 100'000; ++i) uplink.event(event("port_changed"));
  v1::ProbeResult result;
  for (int i = 0; i < 100'000; ++i) uplink.result(result);
  EXPECT_LE(uplink.waiting(), 2 * Uplink::kMostWaiting);
  EXPECT_GT(uplink.counts().events_lost, 180'000U);
  EXPECT_LE(uplink.queued_bytes(), Uplink::kQueueLimitBytes + large.ByteSizeLong());
}

/// A controller on a thread of its own, for code that waits.
class ProbeControllerTest : public testing::Test {
 protected:
  ~ProbeControllerTest() override {
    asio::post(io_, [&] { controller_.close(); });
    thread_.join();
  }
  [[nodiscard]] Endpoint endpoint() const { return {"127.0.0.1", port_}; }

  asio::io_context io_{1};
  te::test::CertificateAuthority authority_;
  test::FakeController controller_{io_, authority_.issue(kControllerName)};
  std::uint16_t port_ = controller_.port();
  std::thread thread_{[this] { io_.run(); }};
};

TEST_F(ProbeControllerTest, ReachableControllerIsToldWithoutASession) {
  const auto tls = make_tls_context(authority_.issue("h1"), TlsSide::kClient).value();
  const auto reached = probe_controller(tls, endpoint());
  EXPECT_TRUE(reached) << reached.error().message;
}

TEST_F(ProbeControllerTest, CertificateThatTheControllerRefusesIsTold) {
  te::test::CertificateAuthority stranger;
  TlsFiles files = stranger.issue("h1");
  files.ca = authority_.issue("h1").ca;
  const auto refused = probe_controller(make_tls_context(files, TlsSide::kClient).value(), endpoint());
  ASSERT_FALSE(refused);
  EXPECT_NE(refused.error().message.find("refuses this node's certificate"), std::string::npos)
      << refused.error().message;
}

TEST(ProbeController, PortWhereNobodyListensIsTold) {
  te::test::CertificateAuthority authority;
  const auto tls = make_tls_context(authority.issue("h1"), TlsSide::kClient).value();
  const auto refused = probe_controller(tls, {"127.0.0.1", 1});
  ASSERT_FALSE(refused);
  EXPECT_NE(refused.error().message.find("connect: "), std::string::npos);
}

TEST_F(UplinkTest, StopEndsAllLoops) {
  auto& server = controller();
  Uplink& uplink = connect({server.port()});
  ASSERT_TRUE(until([&] { return !replies_.empty(); }));
  uplink.stop();
  server.close();
  io_.restart();
  io_.run_for(std::chrono::seconds(10));
  EXPECT_TRUE(io_.stopped());
}

}  // namespace
}  // namespace te::agent
