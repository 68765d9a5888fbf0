// SPDX-License-Identifier: Apache-2.0
#include <gtest/gtest.h>
#include <stdlib.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/un.h>
#include <unistd.h>

#include <boost/asio/executor_work_guard.hpp>
#include <boost/asio/io_context.hpp>
#include <chrono>
#include <cstring>
#include <filesystem>
#include <string>
#include <thread>
#include <vector>

#include "common/os/unique_fd.h"
#include "te-controller/app/api.h"
#include "te-controller/app/connection_table.h"
#include "te-controller/app/http_server.h"
#include "te-controller/cli/api_client.h"
#include "topology/builder.h"

namespace te {
namespace {

TEST(Target, IsSplitIntoPathAndDecodedQuery) {
  const auto request = parse_target("GET", "/v1/paths?source=h1&destination=fd00%3A%3A1&x");
  ASSERT_TRUE(request);
  EXPECT_EQ(request->path, "/v1/paths");
  EXPECT_EQ(request->query.at("destination"), "fd00::1");
  EXPECT_EQ(request->query.at("x"), "");
  EXPECT_FALSE(parse_target("GET", "no-slash"));
  EXPECT_FALSE(parse_target("GET", "/a%2"));
  EXPECT_FALSE(parse_target("GET", "/a?b=%zz"));
  const auto twice = parse_target("POST", "/v1/act?on=true&on=false");
  ASSERT_FALSE(twice);
  EXPECT_EQ(twice.error().message, "'on' is given twice");
}

class ApiTest : public ::testing::Test {
 protected:
  HttpReply ask(const std::string& method, const std::string& target) {
    return api_.answer(*parse_target(method, target));
  }

  EventLog events_{0};
  Engine engine_{build_clos({}), {}, 1'000'000'000, 1'700'000'000'000'000};
  int woken_ = 0;
  Api api_{engine_,
           {.version = "1",
            .topology = "t.yaml",
            .warnings = [] { return std::vector<std::string>{"mind"}; },
            .wake = [this] { ++woken_; },
            .now_ns = [] { return std::int64_t{2'000'000'000}; },
            .events = &events_}};
};

TEST_F(ApiTest, TellsEventsAfterANumber) {
  for (const char* text : {"first", "second", "third"}) events_.add("h1", "link_down", text, 1'700'000'000'500'000);
  v1::EventList list = events_.after(0, 2);
  ASSERT_EQ(list.events_size(), 2);  // the newest
  EXPECT_EQ(list.events(0).text(), "second");
  EXPECT_EQ(list.events(0).wall_s(), 1'700'000'000.5);
  EXPECT_NE(ask("GET", "/v1/events?after=2").body.find("third"), std::string::npos);
  EXPECT_EQ(ask("GET", "/v1/events?after=2").body.find("second"), std::string::npos);
  EXPECT_NE(ask("GET", "/v1/events?after=3").body.find("\"events\":[]"), std::string::npos);
}

TEST(EventLog, KeepsOneSourceFromPushingOutTheOthers) {
  EventLog events(0);
  events.add("h1", "x", "calm", 1);
  for (int i = 0; i < 5000; ++i) events.add("h2", "x", "flood", 1);
  const v1::EventList list = events.after(0, 5000);
  EXPECT_EQ(list.events(0).text(), "calm");
  EXPECT_LT(list.events_size(), 1000);
  EXPECT_EQ(list.events_size() + list.left_out(), 5001);
}

TEST(BearerToken, IsAWordAfterItsScheme) {
  EXPECT_EQ(bearer_token("Bearer abc"), "abc");
  EXPECT_EQ(bearer_token("bearer abc"), "abc");
  for (const char* wrong : {"", "Bearer ", "Basic abc", "Bearer a b", "Bearerabc", "Bearer a\n"})
    EXPECT_FALSE(bearer_token(wrong)) << wrong;
}

TEST(ConnectionTable, TakesFromThePeerWithTheMostItsOldest) {
  ConnectionTable table(3);
  std::vector<std::string> closed;
  const auto enter = [&](const std::string& peer, const std::string& name) {
    return table.enter(peer, [&closed, name] { closed.push_back(name); });
  };
  enter("calm", "c1");
  enter("greedy", "g1");
  const auto second = enter("greedy", "g2");
  enter("new", "n1");
  EXPECT_EQ(closed, std::vector<std::string>{"g1"});
  table.leave(second);
  enter("greedy", "g3");
  EXPECT_EQ(closed.size(), 1U);
  enter("last", "l1");
  EXPECT_EQ(closed, (std::vector<std::string>{"g1", "c1"}));  // all have one: the oldest
  EXPECT_EQ(table.displaced(), 2U);
  table.close_all();
  EXPECT_EQ(table.size(), 0U);
}

TEST_F(ApiTest, PrintsEveryPrimitiveFieldUnderItsProtoName) {
  const HttpReply reply = ask("GET", "/v1/status");
  EXPECT_EQ(reply.status, 200);
  for (const char* part : {"\"mode\":\"observe\"", "\"agents_expected\":8", "\"moves_total\":0", "\"uptime_s\":1",
                           "\"warnings\":[\"mind\"]"}) {
    EXPECT_NE(reply.body.find(part), std::string::npos) << part << " in " << reply.body;
  }
}

TEST_F(ApiTest, AnswersEveryViewOfAnEmptyFleet) {
  for (const char* target : {"/v1/status", "/v1/nodes", "/v1/links", "/v1/flows", "/v1/flows?node=h1",
                             "/v1/flows?node=spine1", "/v1/plan", "/v1/switches", "/v1/imbalance", "/v1/overrides",
                             "/v1/moves?limit=5", "/v1/paths?source=h1&destination=10.2.1.2"}) {
    EXPECT_EQ(ask("GET", target).status, 200) << target;
  }
  EXPECT_NE(ask("GET", "/v1/paths?source=h1&destination=10.2.1.2").body.find("no flow runs between them"),
            std::string::npos);
}

TEST_F(ApiTest, DrainsAndTakesBackInTheNameOfWhoAsks) {
  HttpRequest request = *parse_target("POST", "/v1/drain?target=leaf1:spine1&ttl_s=60&reason=new%20optics");
  request.who = "alice";
  const HttpReply drained = api_.answer(request);
  EXPECT_EQ(drained.status, 200) << drained.body;
  for (const char* part :
       {"\"target\":\"leaf1:spine1\"", "\"who\":\"alice\"", "\"reason\":\"new optics\"", "\"until_s\":1700000061"})
    EXPECT_NE(drained.body.find(part), std::string::npos) << part << " in " << drained.body;
  EXPECT_EQ(woken_, 1);
  EXPECT_NE(ask("GET", "/v1/status").body.find("leaf1:spine1 is drained by alice"), std::string::npos);
  EXPECT_NE(drained.body.find("\"notes\":[\"mode is observe: flows stay on it until 'tectl act on'\"]"),
            std::string::npos)
      << drained.body;
  EXPECT_NE(ask("GET", "/v1/overrides").body.find("\"notes\":[]"), std::string::npos);
  const std::string links = ask("GET", "/v1/links").body;
  EXPECT_NE(links.find("\"drained\":\"drained by alice for "), std::string::npos) << links;
  EXPECT_NE(ask("GET", "/v1/paths?source=h1&destination=10.2.1.2").body.find("\"state\":\"drained\""),
            std::string::npos);
  const std::string again = ask("POST", "/v1/drain?target=spine1:leaf1").body;  // the same cable, by its other end
  EXPECT_NE(again.find("it takes the place of an older one: drained by alice for "), std::string::npos) << again;
  EXPECT_EQ(engine_.overrides().all().size(), 1U);
  EXPECT_NE(ask("POST", "/v1/undrain?target=spine1:leaf1").body.find("\"overrides\":[]"), std::string::npos);
  EXPECT_EQ(ask("POST", "/v1/undrain?target=leaf1:spine1").status, 409);
  EXPECT_EQ(ask("POST", "/v1/drain?target=h1").status, 409);
  EXPECT_EQ(ask("POST", "/v1/drain").status, 400);
  EXPECT_EQ(ask("POST", "/v1/drain?target=spine1&ttl_s=soon").status, 400);
  EXPECT_EQ(ask("POST", "/v1/drain?target=spine1&force=yes").status, 400);
  EXPECT_EQ(ask("POST", "/v1/drain?target=spine1&reason=a%0Aforged%20line").status, 400);
  EXPECT_EQ(ask("POST", "/v1/drain?target=spine1&reason=%ff").status, 400);
  EXPECT_EQ(ask("POST", "/v1/drain?target=spine1&reason=" + std::string(201, 'a')).status, 400);
  EXPECT_EQ(ask("POST", "/v1/pin?flow=zz").status, 409);
  EXPECT_EQ(ask("POST", "/v1/unpin?flow=zz").status, 409);
}

TEST_F(ApiTest, SaysWhatIsWrongWithACall) {
  EXPECT_EQ(ask("GET", "/v1/nothing").status, 404);
  EXPECT_EQ(ask("GET", "/v1/explain").status, 400);
  EXPECT_EQ(ask("GET", "/v1/explain?flow=zz").status, 404);
  EXPECT_EQ(ask("GET", "/v1/flows?node=spine99").status, 404);
  EXPECT_EQ(ask("GET", "/v1/paths?source=h1").status, 400);
  EXPECT_EQ(ask("GET", "/v1/paths?source=h1&destination=nobody").status, 404);
  EXPECT_EQ(ask("GET", "/v1/moves?limit=many").status, 400);
  EXPECT_EQ(ask("GET", "/v1/events?after=-1").status, 400);
  EXPECT_EQ(ask("PUT", "/v1/act?on=true").status, 405);
  EXPECT_EQ(ask("POST", "/v1/act").status, 400);
  EXPECT_EQ(ask("POST", "/v1/resume").status, 409);
  EXPECT_EQ(ask("GET", "/v1/nothing\"quoted").body, "{\"error\":\"nothing to GET at /v1/nothing\\\"quoted\"}\n");
  EXPECT_EQ(woken_, 0);
}

TEST_F(ApiTest, SwitchesTheModeAndWakesTheController) {
  EXPECT_NE(ask("POST", "/v1/act?on=true").body.find("\"mode\":\"act\""), std::string::npos);
  EXPECT_NE(ask("POST", "/v1/pause").body.find("\"mode\":\"paused\""), std::string::npos);
  EXPECT_EQ(ask("POST", "/v1/act?on=true").status, 409);
  EXPECT_NE(ask("POST", "/v1/act?on=false").body.find("\"mode\":\"observe\""), std::string::npos);
  EXPECT_NE(ask("POST", "/v1/act?on=true").body.find("\"mode\":\"act\""), std::string::npos);
  EXPECT_NE(ask("POST", "/v1/pause").body.find("\"mode\":\"paused\""), std::string::npos);
  EXPECT_NE(ask("POST", "/v1/resume").body.find("\"mode\":\"act\""), std::string::npos);
  EXPECT_EQ(woken_, 6);
}

/// Serves on a socket of its own; the io_context runs in another thread.
class ServerTest : public ::testing::Test {
 protected:
  ServerTest() {
    std::string pattern = ::testing::TempDir() + "te-http-XXXXXX";
    folder_ = ::mkdtemp(pattern.data());
    path_ = folder_ + "/api.sock";
  }
  ~ServerTest() override {
    io_.stop();
    if (thread_.joinable()) thread_.join();
    server_.reset();
    std::filesystem::remove_all(folder_);
  }
  static HttpReply echo(const HttpRequest& request) {
    return {.status = 200, .content_type = "text/plain", .body = request.path};
  }
  void serve() {
    auto server = HttpServer::on_unix_socket(io_, path_, &echo);
    ASSERT_TRUE(server) << server.error().message;
    server_ = *std::move(server);
    server_->start();
    thread_ = std::thread([this] { io_.run(); });
  }
  /// A connection on which `bytes` were sent.
  [[nodiscard]] UniqueFd begin(const std::string& bytes) const {
    UniqueFd fd(::socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0));
    sockaddr_un address{};
    address.sun_family = AF_UNIX;
    std::memcpy(address.sun_path, path_.c_str(), path_.size() + 1);
    EXPECT_EQ(::connect(fd.get(), reinterpret_cast<const sockaddr*>(&address), sizeof address), 0);
    EXPECT_EQ(::send(fd.get(), bytes.data(), bytes.size(), MSG_NOSIGNAL), static_cast<ssize_t>(bytes.size()));
    return fd;
  }
  /// Sends bytes as they are; what comes back until the server closes.
  [[nodiscard]] std::string exchange(const std::string& bytes) const {
    const UniqueFd fd = begin(bytes);
    std::string answer;
    char chunk[4096];
    for (ssize_t got = 0; (got = ::recv(fd.get(), chunk, sizeof chunk, 0)) > 0;)
      answer.append(chunk, static_cast<std::size_t>(got));
    return answer;
  }

  boost::asio::io_context io_{1};
  boost::asio::executor_work_guard<boost::asio::io_context::executor_type> work_{io_.get_executor()};
  std::unique_ptr<HttpServer> server_;
  std::thread thread_;
  std::string folder_;
  std::string path_;
};

TEST_F(ServerTest, AnswersOnASocketForItsGroupOnly) {
  serve();
  struct stat found {};
  ASSERT_EQ(::stat(path_.c_str(), &found), 0);
  EXPECT_EQ(found.st_mode & 0777U, 0660U);
  const auto reply = call_api({.socket_path = path_}, "GET", "/hello", std::chrono::seconds(5));
  ASSERT_TRUE(reply) << reply.error().message;
  EXPECT_EQ(reply->status, 200);
  EXPECT_EQ(reply->body, "/hello");
}

TEST_F(ServerTest, ReplacesAStaleSocketButNotOneThatAnswersOrAFile) {
  {
    const UniqueFd fd(::socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0));
    sockaddr_un address{};
    address.sun_family = AF_UNIX;
    std::memcpy(address.sun_path, path_.c_str(), path_.size() + 1);
    ASSERT_EQ(::bind(fd.get(), reinterpret_cast<const sockaddr*>(&address), sizeof address), 0);
  }
  serve();
  const auto second = HttpServer::on_unix_socket(io_, path_, &echo);
  ASSERT_FALSE(second);
  EXPECT_NE(second.error().message.find("another te-controller answers"), std::string::npos);
  EXPECT_FALSE(HttpServer::on_unix_socket(io_, folder_, &echo));
}

TEST_F(ServerTest, RefusesLargeAndMalformedRequests) {
  serve();
  EXPECT_NE(exchange("GET / HTTP/1.1\r\nX: " + std::string(20000, 'x') + "\r\n\r\n").find("HTTP/1.1 413"),
            std::string::npos);
  EXPECT_NE(exchange("POST / HTTP/1.1\r\nContent-Length: 100000\r\n\r\n").find("HTTP/1.1 413"), std::string::npos);
  EXPECT_NE(exchange("nonsense\r\n\r\n").find("HTTP/1.1 400"), std::string::npos);
  EXPECT_NE(exchange("GET /after HTTP/1.0\r\n\r\n").find("/after"), std::string::npos);
}

TEST_F(ServerTest, AnswersWhileOthersKeepHalfSentRequests) {
  serve();
  std::vector<UniqueFd> half_sent;
  for (int i = 0; i < 100; ++i) half_sent.push_back(begin("GET /v1/status HTTP/1.1\r\nX-Half:"));
  const auto begun = std::chrono::steady_clock::now();
  const auto reply = call_api({.socket_path = path_}, "GET", "/hello", std::chrono::seconds(5));
  ASSERT_TRUE(reply) << reply.error().message;
  EXPECT_EQ(reply->body, "/hello");
  EXPECT_LT(std::chrono::steady_clock::now() - begun, std::chrono::seconds(1));
}

TEST_F(ServerTest, EndsARequestThatIsNotSentWithinTwoSeconds) {
  serve();
  const auto begun = std::chrono::steady_clock::now();
  EXPECT_EQ(exchange("GET / HTTP/1.1\r\nX-Half:"), "");
  const auto took = std::chrono::steady_clock::now() - begun;
  EXPECT_GT(took, std::chrono::milliseconds(1500));
  EXPECT_LT(took, std::chrono::seconds(8));
}

}  // namespace
}  // namespace te
