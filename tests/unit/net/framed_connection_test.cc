// SPDX-License-Identifier: Apache-2.0
#include "common/net/framed_connection.h"

#include <gtest/gtest.h>

#include <boost/asio/co_spawn.hpp>
#include <boost/asio/detached.hpp>
#include <boost/asio/write.hpp>

#include "te/v1/agent.pb.h"
#include "tests/support/certificates.h"
#include "tests/unit/net/tls_pair.h"

namespace te::test {
namespace {

using std::chrono::milliseconds;
namespace asio = boost::asio;

class FramedConnectionTest : public testing::Test {
 protected:
  void SetUp() override { pair_.connect(authority_.issue("te-controller"), authority_.issue("h1")); }

  std::shared_ptr<FramedConnection> server(std::size_t limit = 1 << 20) {
    return std::make_shared<FramedConnection>(std::move(*pair_.server), limit);
  }
  std::shared_ptr<FramedConnection> client(std::size_t limit = 1 << 20) {
    return std::make_shared<FramedConnection>(std::move(*pair_.client), limit);
  }
  /// Reads `count` frames, or until an error, then closes.
  void read_frames(const std::shared_ptr<FramedConnection>& connection, std::size_t count, milliseconds idle_limit) {
    asio::co_spawn(
        pair_.io,
        [this, connection, count, idle_limit]() -> asio::awaitable<void> {
          while (bodies_.size() < count) {
            auto body = co_await connection->read(idle_limit);
            if (!body) {
              error_ = body.error().message;
              break;
            }
            bodies_.push_back(*std::move(body));
          }
          connection->close();
        },
        asio::detached);
  }
  void start_writer(const std::shared_ptr<FramedConnection>& connection) {
    asio::co_spawn(pair_.io, FramedConnection::run_writer(connection), asio::detached);
  }

  CertificateAuthority authority_;
  TlsPair pair_;
  std::vector<std::string> bodies_;
  std::string error_;
};

v1::AgentMessage hello(const std::string& node) {
  v1::AgentMessage message;
  message.mutable_hello()->set_node(node);
  return message;
}

TEST_F(FramedConnectionTest, CarriesMessagesInOrder) {
  const auto sender = client();
  const auto receiver = server();
  start_writer(sender);
  for (int i = 0; i < 100; ++i) ASSERT_TRUE(sender->send(hello("h" + std::to_string(i))));
  read_frames(receiver, 100, milliseconds(5000));
  asio::post(pair_.io, [] {});
  while (bodies_.size() < 100 && error_.empty()) pair_.io.run_one_for(milliseconds(5000));
  ASSERT_EQ(bodies_.size(), 100U) << error_;
  v1::AgentMessage last;
  ASSERT_TRUE(last.ParseFromString(bodies_.back()));
  EXPECT_EQ(last.hello().node(), "h99");
  sender->close();
  pair_.io.run_for(milliseconds(5000));
}

TEST_F(FramedConnectionTest, RefusesWhenTheQueueIsFull) {
  const auto sender = client(1000);
  EXPECT_TRUE(sender->send(hello(std::string(900, 'x'))));
  EXPECT_FALSE(sender->send(hello(std::string(200, 'x'))));
  EXPECT_LE(sender->queued_bytes(), 1000U);
}

TEST_F(FramedConnectionTest, EndsASilentConnection) {
  const auto receiver = server();
  read_frames(receiver, 1, milliseconds(20));
  pair_.io.run_for(milliseconds(5000));
  EXPECT_NE(error_.find("nothing received for 20 ms"), std::string::npos) << error_;
}

TEST_F(FramedConnectionTest, RefusesAnOversizedFrame) {
  const auto receiver = server();
  const std::string header("\xFF\xFF\xFF\xFF", 4);
  asio::write(*pair_.client, asio::buffer(header));
  read_frames(receiver, 1, milliseconds(5000));
  pair_.io.run_for(milliseconds(5000));
  EXPECT_NE(error_.find("limit"), std::string::npos) << error_;
}

TEST_F(FramedConnectionTest, TellsWhenThePeerCloses) {
  const auto receiver = server();
  read_frames(receiver, 1, milliseconds(5000));
  client()->close();
  pair_.io.run_for(milliseconds(5000));
  EXPECT_NE(error_.find("connection lost"), std::string::npos) << error_;
  EXPECT_FALSE(receiver->is_open());
}

TEST_F(FramedConnectionTest, SendAfterCloseIsRefused) {
  const auto sender = client();
  sender->close();
  EXPECT_FALSE(sender->send(hello("h1")));
}

}  // namespace
}  // namespace te::test
