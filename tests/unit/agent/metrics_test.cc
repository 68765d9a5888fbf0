// SPDX-License-Identifier: Apache-2.0
#include "host-agent/io/metrics.h"

#include <gtest/gtest.h>

#include <boost/asio/io_context.hpp>
#include <boost/asio/ip/tcp.hpp>
#include <boost/asio/read.hpp>
#include <boost/asio/write.hpp>
#include <string>

#include "host-agent/io/metrics_server.h"
#include "tests/unit/agent/fake_controller.h"

namespace te::agent {
namespace {

namespace asio = boost::asio;

TEST(Metrics, CountersFollowTheFigures) {
  Metrics metrics;
  metrics.update({.readings = 3, .flows = 2});
  metrics.update({.readings = 5, .flows = 1});
  EXPECT_NE(metrics.text().find("te_agent_readings_total 5\n"), std::string::npos);
  EXPECT_NE(metrics.text().find("te_agent_flows 1\n"), std::string::npos);
}

TEST(Metrics, CounterNeverGoesBack) {
  Metrics metrics;
  metrics.update({.readings = 3});
  metrics.update({.readings = 2});
  EXPECT_NE(metrics.text().find("te_agent_readings_total 3\n"), std::string::npos);
}

/// What the server says to `request`.
std::string ask(const std::string& request) {
  asio::io_context io(1);
  MetricsServer server(io, [] { return std::string("figures\n"); });
  auto listening = server.listen({"127.0.0.1", 0});
  EXPECT_TRUE(listening.ok());
  asio::ip::tcp::socket client(io);
  client.connect({asio::ip::make_address("127.0.0.1"), server.port()});
  asio::write(client, asio::buffer(request));
  std::string reply;
  bool done = false;
  asio::async_read(client, asio::dynamic_buffer(reply),
                   [&](const boost::system::error_code&, std::size_t) { done = true; });
  EXPECT_TRUE(test::run_until(io, [&] { return done; }));
  server.stop();
  return reply;
}

TEST(MetricsServer, GivesTheText) {
  const std::string reply = ask("GET /metrics HTTP/1.1\r\nHost: x\r\n\r\n");
  EXPECT_TRUE(reply.starts_with("HTTP/1.1 200 OK\r\n"));
  EXPECT_TRUE(reply.ends_with("\r\n\r\nfigures\n"));
}

TEST(MetricsServer, GivesNothingElse) {
  EXPECT_TRUE(ask("GET / HTTP/1.1\r\n\r\n").starts_with("HTTP/1.1 404 "));
  EXPECT_TRUE(ask("POST /metrics HTTP/1.1\r\n\r\n").starts_with("HTTP/1.1 404 "));
}

TEST(MetricsServer, HangsUpOnARequestWithoutEnd) { EXPECT_EQ(ask(std::string(10000, 'x')), ""); }

TEST(MetricsServer, HangsUpOnASilentClient) { EXPECT_EQ(ask(""), ""); }

TEST(MetricsServer, AddressInUseIsAnError) {
  asio::io_context io(1);
  MetricsServer first(io, [] { return std::string(); });
  MetricsServer second(io, [] { return std::string(); });
  ASSERT_TRUE(first.listen({"127.0.0.1", 0}));
  EXPECT_FALSE(second.listen({"127.0.0.1", first.port()}).ok());
  first.stop();
  io.run_for(std::chrono::seconds(1));
}

}  // namespace
}  // namespace te::agent
