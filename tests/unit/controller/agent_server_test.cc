// SPDX-License-Identifier: Apache-2.0
#include "te-controller/app/agent_server.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <boost/asio/co_spawn.hpp>
#include <boost/asio/connect.hpp>
#include <boost/asio/detached.hpp>
#include <boost/asio/io_context.hpp>
#include <boost/asio/redirect_error.hpp>
#include <boost/asio/use_awaitable.hpp>
#include <functional>
#include <map>
#include <optional>
#include <vector>

#include "tests/support/certificates.h"

namespace te {
namespace {

namespace asio = boost::asio;
using namespace std::chrono_literals;

struct Recorder final : AgentListener {
  v1::HelloReply on_hello(const std::string& node, const v1::Hello&) override {
    v1::HelloReply reply;
    reply.set_accepted(node != "stranger");
    if (!reply.accepted()) reply.set_reason("not a host of the fabric");
    hellos.push_back(node);
    return reply;
  }
  Result<void> on_message(const std::string& node, const v1::AgentMessage& message) override {
    if (message.has_event()) return Error{"no events here"};
    ++messages;
    ++of[node];
    return {};
  }
  Result<void> on_flows(const std::string& node, const FlowNews&) override {
    ++messages;
    ++of[node];
    return {};
  }
  void on_gone(const std::string& node) override { gone.push_back(node); }
  std::vector<std::string> hellos;
  std::vector<std::string> gone;
  int messages = 0;
  std::map<std::string, int> of;  ///< messages by node
};

class AgentServerTest : public ::testing::Test {
 protected:
  static constexpr AgentLimits kLimits{.frames_per_s = 50, .frames_burst = 20};

  AgentServerTest() {
    auto tls = TlsSource::open(authority_.issue("te-controller"), PeerCertificate::kRequired);
    auto server = AgentServer::listen(io_, {.host = "127.0.0.1", .port = 0}, *tls, 1000ms, kLimits);
    EXPECT_TRUE(server);
    server_ = *std::move(server);
    server_->start(recorder_);
  }
  /// Runs until `done` or a deadline.
  bool run_until(const std::function<bool()>& done) {
    const auto deadline = std::chrono::steady_clock::now() + 10s;
    while (!done() && std::chrono::steady_clock::now() < deadline) io_.run_one_for(50ms);
    return done();
  }
  /// A client with a certificate of `certificate`; empty: of another authority.
  std::shared_ptr<FramedConnection> connect(const std::string& certificate) {
    std::shared_ptr<FramedConnection> connection;
    bool over = false;
    asio::co_spawn(
        io_,
        [&]() -> asio::awaitable<void> {
          auto files = certificate.empty() ? other_.issue("h1") : authority_.issue(certificate);
          files.ca = authority_.issue("x").ca;
          auto tls = make_tls_context(files, TlsSide::kClient);
          asio::ip::tcp::socket socket(io_);
          boost::system::error_code failed;
          co_await socket.async_connect({asio::ip::address_v4::loopback(), server_->port()},
                                        asio::redirect_error(asio::use_awaitable, failed));
          contexts_.push_back(*tls);
          TlsStream stream(std::move(socket), **tls);
          co_await stream.async_handshake(asio::ssl::stream_base::client,
                                          asio::redirect_error(asio::use_awaitable, failed));
          if (!failed) connection = std::make_shared<FramedConnection>(std::move(stream), 1 << 20);
          over = true;
        },
        asio::detached);
    EXPECT_TRUE(run_until([&] { return over; }));
    if (connection) asio::co_spawn(io_, FramedConnection::run_writer(connection), asio::detached);
    return connection;
  }
  static void hello(FramedConnection& connection, const std::string& node) {
    v1::AgentMessage message;
    message.mutable_hello()->set_protocol_version(1);
    message.mutable_hello()->set_node(node);
    connection.send(message);
  }
  /// The next message; none when the connection ends first.
  std::optional<v1::ControllerMessage> receive(std::shared_ptr<FramedConnection> connection) {
    std::optional<v1::ControllerMessage> message;
    bool over = false;
    asio::co_spawn(
        io_,
        [&]() -> asio::awaitable<void> {
          auto body = co_await connection->read(5000ms);
          if (body) message.emplace().ParseFromString(*body);
          over = true;
        },
        asio::detached);
    EXPECT_TRUE(run_until([&] { return over; }));
    return message;
  }

  test::CertificateAuthority authority_;
  test::CertificateAuthority other_;
  asio::io_context io_{1};
  Recorder recorder_;
  std::vector<std::shared_ptr<asio::ssl::context>> contexts_;
  std::unique_ptr<AgentServer> server_;
};

TEST_F(AgentServerTest, AcceptsANodeWhoseCertificateFitsItsHello) {
  const auto agent = connect("h1");
  hello(*agent, "h1");
  const auto reply = receive(agent);
  ASSERT_TRUE(reply && reply->has_hello_reply());
  EXPECT_TRUE(reply->hello_reply().accepted());
  EXPECT_EQ(server_->counters().accepted, 1U);
  v1::ControllerMessage message;
  message.mutable_probe_cancel()->set_id(7);
  EXPECT_TRUE(server_->send("h1", message));
  const auto got = receive(agent);
  ASSERT_TRUE(got);
  EXPECT_EQ(got->probe_cancel().id(), 7U);
  EXPECT_FALSE(server_->send("h2", message));
}

TEST_F(AgentServerTest, RefusesAHelloOfAnotherNodeAndSaysWhy) {
  const auto agent = connect("h1");
  hello(*agent, "h2");
  const auto reply = receive(agent);
  ASSERT_TRUE(reply);
  EXPECT_FALSE(reply->hello_reply().accepted());
  EXPECT_NE(reply->hello_reply().reason().find("certificate of 'h1' but Hello of 'h2'"), std::string::npos);
  EXPECT_FALSE(receive(agent));
  EXPECT_EQ(server_->counters().refused, 1U);
  EXPECT_TRUE(recorder_.hellos.empty());
}

TEST_F(AgentServerTest, RefusesWhomTheListenerRefuses) {
  const auto agent = connect("stranger");
  hello(*agent, "stranger");
  const auto reply = receive(agent);
  ASSERT_TRUE(reply);
  EXPECT_EQ(reply->hello_reply().reason(), "not a host of the fabric");
  EXPECT_FALSE(receive(agent));
  EXPECT_TRUE(recorder_.gone.empty());
}

TEST_F(AgentServerTest, RefusesCertificatesOfAnotherAuthority) {
  (void)connect("");
  EXPECT_TRUE(run_until([&] { return server_->counters().refused == 1; }));
}

TEST_F(AgentServerTest, WarnsOfWhomItRefusesUntilTheyAreAccepted) {
  for (int i = 0; i < 2; ++i) {
    const auto agent = connect("h1");
    hello(*agent, "h2");
    ASSERT_TRUE(receive(agent));
  }
  EXPECT_EQ(server_->warnings(),
            std::vector<std::string>{"agent h1 was refused 2 times: certificate of 'h1' but Hello of 'h2'"});
  (void)connect("");
  ASSERT_TRUE(run_until([&] { return server_->counters().refused == 3; }));
  ASSERT_EQ(server_->warnings().size(), 2U);
  EXPECT_TRUE(server_->warnings()[0].starts_with("agent 127.0.0.1 was refused: certificate of 'h1', serial "));
  const auto agent = connect("h1");
  hello(*agent, "h1");
  ASSERT_TRUE(receive(agent));
  EXPECT_EQ(server_->warnings().size(), 1U);
}

TEST_F(AgentServerTest, LetsIdleConnectionsOfOneAddressKeepNoOtherOut) {
  constexpr int kIdle = 20;
  std::vector<asio::ip::tcp::socket> idle;
  for (int i = 0; i < kIdle; ++i) {
    idle.emplace_back(io_, asio::ip::tcp::v4());
    idle.back().bind({asio::ip::make_address_v4("127.0.0.2"), 0});
    idle.back().connect({asio::ip::address_v4::loopback(), server_->port()});
  }
  EXPECT_TRUE(run_until([&] { return server_->counters().refused == kIdle - 16; }));
  EXPECT_EQ(server_->warnings().size(), 1U);
  const auto agent = connect("h1");  // from 127.0.0.1
  ASSERT_TRUE(agent);
  hello(*agent, "h1");
  ASSERT_TRUE(receive(agent));
  EXPECT_EQ(server_->counters().accepted, 1U);
  for (auto& socket : idle) socket.close();
  EXPECT_TRUE(run_until([&] { return server_->counters().refused == kIdle; }));  // handshakes that failed
}

TEST_F(AgentServerTest, LetsANewSessionOfANodeReplaceTheOldOne) {
  const auto old_session = connect("h1");
  hello(*old_session, "h1");
  ASSERT_TRUE(receive(old_session));
  const auto new_session = connect("h1");
  hello(*new_session, "h1");
  ASSERT_TRUE(receive(new_session));
  EXPECT_FALSE(receive(old_session));
  EXPECT_TRUE(recorder_.gone.empty());
  v1::ControllerMessage message;
  message.mutable_probe_cancel()->set_id(1);
  EXPECT_TRUE(server_->send("h1", message));
  EXPECT_TRUE(receive(new_session));
}

TEST_F(AgentServerTest, EndsASessionThatSendsNoFlowReports) {
  const auto agent = connect("h1");
  hello(*agent, "h1");
  ASSERT_TRUE(receive(agent));
  EXPECT_TRUE(run_until([&] { return recorder_.gone == std::vector<std::string>{"h1"}; }));
}

TEST_F(AgentServerTest, EndsASessionWhoseMessageCannotBeTaken) {
  const auto agent = connect("h1");
  hello(*agent, "h1");
  ASSERT_TRUE(receive(agent));
  v1::AgentMessage event;
  event.mutable_event()->set_kind("x");
  agent->send(event);
  EXPECT_TRUE(run_until([&] { return !recorder_.gone.empty(); }));
  EXPECT_EQ(server_->counters().broken, 1U);
}

TEST_F(AgentServerTest, EndsASessionThatDoesNotReadWhatItIsSent) {
  const auto agent = connect("h1");
  hello(*agent, "h1");
  ASSERT_TRUE(receive(agent));
  v1::ControllerMessage large;
  for (int i = 0; i < 1'000'000; ++i) large.mutable_probe_request()->add_ports(50000);
  bool queued = true;
  for (int i = 0; i < 10 && queued; ++i) queued = server_->send("h1", large);
  EXPECT_FALSE(queued);
  EXPECT_EQ(server_->counters().overflowed, 1U);
  EXPECT_TRUE(run_until([&] { return !recorder_.gone.empty(); }));
}

TEST_F(AgentServerTest, ReadsAFloodingAgentMoreSlowlyWhileOthersAreHeardAtOnce) {
  constexpr int kFlood = 2000;
  const auto flooding = connect("h1");
  hello(*flooding, "h1");
  ASSERT_TRUE(receive(flooding));
  v1::AgentMessage report;
  report.mutable_flows()->set_interval_ms(500);
  for (int i = 0; i < kFlood; ++i) ASSERT_TRUE(flooding->send(report));
  ASSERT_TRUE(run_until([&] { return server_->counters().slowed > 0; }));
  const int before = recorder_.messages;
  EXPECT_LT(before, 100);
  const auto calm = connect("h2");
  hello(*calm, "h2");
  ASSERT_TRUE(receive(calm));
  calm->send(report);
  ASSERT_TRUE(run_until([&] { return recorder_.of["h2"] == 1; }));
  const auto begin = std::chrono::steady_clock::now();
  const int taken = recorder_.of["h1"];
  ASSERT_TRUE(run_until([&] { return recorder_.of["h1"] >= taken + 10; }));
  EXPECT_GT(std::chrono::steady_clock::now() - begin, 100ms);  // ten at 50 a second are due in 200 ms
  EXPECT_EQ(std::count(recorder_.gone.begin(), recorder_.gone.end(), "h1"), 0);
}

TEST_F(AgentServerTest, EndsASessionWhoseMessageAsksForTooMuchMemory) {
  const auto agent = connect("h1");
  hello(*agent, "h1");
  ASSERT_TRUE(receive(agent));
  v1::AgentMessage many;
  for (std::size_t i = 0; i <= kMostFlowReports; ++i) many.mutable_flows()->add_flows();
  agent->send(many);
  EXPECT_TRUE(run_until([&] { return !recorder_.gone.empty(); }));
  EXPECT_EQ(server_->counters().broken, 1U);
  EXPECT_EQ(recorder_.messages, 0);
}

TEST_F(AgentServerTest, LetsASwitchReportLinksOnly) {
  const auto agent = connect("leaf1");
  v1::AgentMessage greeting;
  greeting.mutable_hello()->set_node("leaf1");
  greeting.mutable_hello()->set_role("switch");
  agent->send(greeting);
  ASSERT_TRUE(receive(agent));
  v1::AgentMessage links;
  links.mutable_links()->set_complete(true);
  const auto until = std::chrono::steady_clock::now() + 1500ms;  // longer than the silence that ends a session
  while (std::chrono::steady_clock::now() < until && recorder_.gone.empty()) {
    agent->send(links);
    io_.run_for(200ms);
  }
  EXPECT_TRUE(recorder_.gone.empty());
}

TEST(AgentLimits, CountWhatAMessageAsksForBeforeItIsDecoded) {
  v1::AgentMessage message;
  for (std::size_t i = 0; i < kMostFlowReports; ++i) message.mutable_flows()->add_flows();
  EXPECT_TRUE(check_agent_message(message.SerializeAsString()));
  message.mutable_flows()->add_flows();
  const auto many = check_agent_message(message.SerializeAsString());
  ASSERT_FALSE(many);
  EXPECT_NE(many.error().message.find("65537 flow reports"), std::string::npos);
  v1::AgentMessage large;
  large.mutable_event()->set_text(std::string(kMostAgentMessageBytes + 1, 'x'));
  EXPECT_FALSE(check_agent_message(large.SerializeAsString()));
  EXPECT_TRUE(check_agent_message("\xff\xff\xff"));  // the decoder refuses it
}

}  // namespace
}  // namespace te
