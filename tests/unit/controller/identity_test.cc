// SPDX-License-Identifier: Apache-2.0
// Certificates on real connections: revoked ones are refused, at the handshake and in sessions that are there already.
#include <gtest/gtest.h>

#include <array>
#include <boost/asio/co_spawn.hpp>
#include <boost/asio/detached.hpp>
#include <boost/asio/executor_work_guard.hpp>
#include <boost/asio/io_context.hpp>
#include <boost/asio/post.hpp>
#include <boost/asio/use_awaitable.hpp>
#include <boost/asio/write.hpp>
#include <future>
#include <thread>

#include "te-controller/app/agent_server.h"
#include "te-controller/app/http_server.h"
#include "te-controller/app/reloader.h"
#include "te-controller/cli/api_client.h"
#include "tests/unit/controller/pki_folder.h"

namespace te {
namespace {

namespace asio = boost::asio;
using namespace std::chrono_literals;

class Listener final : public AgentListener {
 public:
  v1::HelloReply on_hello(const std::string&, const v1::Hello&) override {
    v1::HelloReply reply;
    reply.set_accepted(true);
    return reply;
  }
  Result<void> on_message(const std::string&, const v1::AgentMessage&) override { return {}; }
  Result<void> on_flows(const std::string&, const FlowNews&) override { return {}; }
  void on_gone(const std::string& node) override { gone.push_back(node); }
  std::vector<std::string> gone;
};

class RevocationTest : public ::testing::Test {
 protected:
  RevocationTest() {
    tls_ = TlsSource::open(pki_.issue("te-controller", CertificateUse::kServer), PeerCertificate::kRequired).value();
    server_ = AgentServer::listen(io_, {.host = "127.0.0.1", .port = 0}, tls_, 60s).value();
    server_->start(listener_);
    reloader_.add(
        "certificates", [this](bool always) { return tls_->refresh(always); }, [this] { server_->recheck_sessions(); });
  }
  ~RevocationTest() override {
    server_->stop();
    reloader_.stop();
    io_.run_for(100ms);
  }
  bool run_until(const std::function<bool()>& done, std::chrono::milliseconds limit = 10s) {
    const auto deadline = std::chrono::steady_clock::now() + limit;
    while (!done() && std::chrono::steady_clock::now() < deadline) io_.run_one_for(20ms);
    return done();
  }
  /// An agent that says Hello as `node`.
  std::shared_ptr<FramedConnection> connect(TlsFiles files, const std::string& node) {
    files.crl.clear();
    contexts_.push_back(make_tls_context(files, TlsSide::kClient).value());
    TlsStream stream(io_, *contexts_.back());
    stream.lowest_layer().connect({asio::ip::address_v4::loopback(), server_->port()});
    std::optional<boost::system::error_code> ended;
    stream.async_handshake(asio::ssl::stream_base::client,
                           [&](const boost::system::error_code& failed) { ended = failed; });
    EXPECT_TRUE(run_until([&] { return ended.has_value(); }));
    auto connection = std::make_shared<FramedConnection>(std::move(stream), 1 << 20);
    asio::co_spawn(io_, FramedConnection::run_writer(connection), asio::detached);
    v1::AgentMessage message;
    message.mutable_hello()->set_node(node);
    connection->send(message);
    return connection;
  }

  test::PkiFolder pki_;
  asio::io_context io_{1};
  Listener listener_;
  std::vector<std::shared_ptr<asio::ssl::context>> contexts_;
  std::shared_ptr<TlsSource> tls_;
  std::unique_ptr<AgentServer> server_;
  Reloader reloader_{io_};
};

TEST_F(RevocationTest, ARevokedNodeIsRefusedWithNameAndSerialAndCounted) {
  const TlsFiles h1 = pki_.issue("h1");
  const auto revoked = pki_.authority().revoke("h1");
  ASSERT_TRUE(revoked);
  reloader_.refresh(false);
  const auto agent = connect(h1, "h1");
  ASSERT_TRUE(run_until([&] { return server_->counters().revoked == 1; }));
  EXPECT_EQ(server_->counters().refused, 1U);
  EXPECT_EQ(server_->counters().accepted, 0U);
  ASSERT_EQ(server_->warnings().size(), 1U);
  EXPECT_NE(
      server_->warnings()[0].find("certificate of 'h1', serial " + revoked->front().serial + ": certificate revoked"),
      std::string::npos);
  agent->close();
}

TEST_F(RevocationTest, ASessionOfANodeThatIsRevokedEndsWithinTwoSeconds) {
  const auto h1 = connect(pki_.issue("h1"), "h1");
  const auto h2 = connect(pki_.issue("h2"), "h2");
  ASSERT_TRUE(run_until([&] { return server_->counters().accepted == 2; }));
  reloader_.start();  // looks once a second
  ASSERT_TRUE(pki_.authority().revoke("h1"));
  EXPECT_TRUE(run_until([&] { return !listener_.gone.empty(); }, 3s));
  EXPECT_EQ(listener_.gone, std::vector<std::string>{"h1"});
  EXPECT_EQ(server_->counters().revoked, 1U);
  EXPECT_FALSE(server_->send("h1", {}));
  EXPECT_TRUE(server_->send("h2", {}));
  h1->close();
  h2->close();
}

TEST_F(RevocationTest, ABrokenListKeepsTheOldOneAndIsToldUntilItIsGood) {
  const std::string list = pki_.directory() + "/crl.pem";
  const std::string good = read_file(list).value();
  ASSERT_TRUE(replace_file(list, "broken"));
  reloader_.refresh(false);
  ASSERT_EQ(reloader_.warnings().size(), 1U);
  EXPECT_NE(reloader_.warnings()[0].find(list), std::string::npos);
  const auto agent = connect(pki_.issue("h1"), "h1");
  EXPECT_TRUE(run_until([&] { return server_->counters().accepted == 1; }));
  ASSERT_TRUE(replace_file(list, good));
  reloader_.refresh(false);
  EXPECT_TRUE(reloader_.warnings().empty());
  EXPECT_TRUE(listener_.gone.empty());
  agent->close();
}

/// The API over TLS; the io_context runs in another thread.
class TlsApiTest : public ::testing::Test {
 protected:
  TlsApiTest() {
    tls_ = TlsSource::open(pki_.issue("te-controller", CertificateUse::kServer), PeerCertificate::kOptional).value();
    server_ = HttpServer::on_tcp(
                  io_, {.host = "127.0.0.1", .port = 0},
                  [](const HttpRequest& request) {
                    return HttpReply{.status = 200,
                                     .content_type = "text/plain",
                                     .body = request.peer.certificate_name + "|" + request.authorization + "|" +
                                             request.body + "|" + request.peer.address};
                  },
                  tls_)
                  .value();
    server_->start();
    api_.host = "127.0.0.1";
    api_.port = server_->port();
    api_.ca = pki_.directory() + "/ca.pem";
    thread_ = std::thread([this] { io_.run(); });
  }
  ~TlsApiTest() override {
    io_.stop();
    thread_.join();
  }
  void show(const TlsFiles& files) {
    api_.certificate = files.certificate;
    api_.key = files.key;
  }
  std::string ask(const std::string& body = "") {
    const auto reply = call_api(api_, "POST", "/x", 5000ms, body);
    return reply ? reply->body : "error: " + reply.error().message;
  }
  HttpServer::Counters counters() {
    std::promise<HttpServer::Counters> found;
    asio::post(io_, [&] { found.set_value(server_->counters()); });
    return found.get_future().get();
  }
  /// The client may learn of a refusal before it is counted.
  bool counted(std::uint64_t HttpServer::Counters::*counter) {
    const auto deadline = std::chrono::steady_clock::now() + 5s;
    while (counters().*counter == 0 && std::chrono::steady_clock::now() < deadline) std::this_thread::yield();
    return counters().*counter == 1;
  }

  test::PkiFolder pki_;
  asio::io_context io_{1};
  asio::executor_work_guard<asio::io_context::executor_type> work_{io_.get_executor()};
  std::shared_ptr<TlsSource> tls_;
  std::unique_ptr<HttpServer> server_;
  ApiTarget api_;
  std::thread thread_;
};

TEST_F(TlsApiTest, TellsTheHandlerWhoAsks) {
  EXPECT_EQ(ask("body"), "||body|127.0.0.1");
  show(pki_.issue("alice"));
  EXPECT_EQ(ask(), "alice|||127.0.0.1");
  api_.token = "secret";
  EXPECT_EQ(ask(), "alice|Bearer secret||127.0.0.1");
}

TEST_F(TlsApiTest, RefusesACertificateOfAnotherAuthorityAndARevokedOne) {
  test::PkiFolder stranger;
  show(stranger.issue("alice"));
  EXPECT_NE(ask().find("does not accept what --cert shows"), std::string::npos);
  EXPECT_TRUE(counted(&HttpServer::Counters::certificates_bad));
  show(pki_.issue("alice"));
  ASSERT_TRUE(pki_.authority().revoke("alice"));
  asio::post(io_, [this] { EXPECT_TRUE(tls_->refresh(false).value()); });
  EXPECT_NE(ask().find("does not accept what --cert shows"), std::string::npos);
  EXPECT_TRUE(counted(&HttpServer::Counters::certificates_revoked));
}

TEST_F(TlsApiTest, TheClientTrustsOnlyTheControllerOfItsAuthority) {
  test::PkiFolder stranger;
  api_.ca = stranger.directory() + "/ca.pem";
  EXPECT_NE(ask().find("is not trusted"), std::string::npos);
  api_.ca = "/nonexistent/ca.pem";
  EXPECT_NE(ask().find("use certificate authority /nonexistent/ca.pem"), std::string::npos);
  api_.ca.clear();
  EXPECT_NE(ask().find("--ca FILE"), std::string::npos);
}

TEST_F(TlsApiTest, AConnectionThatBeganBeforeAReloadEndsAtItsNextRequest) {
  const auto context = make_tls_context_without_certificate(api_.ca).value();
  asio::io_context own;
  TlsStream stream(own, *context);
  stream.lowest_layer().connect({asio::ip::address_v4::loopback(), api_.port});
  stream.handshake(asio::ssl::stream_base::client);
  const std::string request = "GET / HTTP/1.1\r\nHost: x\r\n\r\n";
  std::array<char, 1024> answer{};
  asio::write(stream, asio::buffer(request));
  EXPECT_GT(stream.read_some(asio::buffer(answer)), 0U);
  (void)counters();  // waits for the server
  asio::post(io_, [this] { EXPECT_TRUE(tls_->refresh(true).value()); });
  asio::write(stream, asio::buffer(request));
  const std::size_t got = stream.read_some(asio::buffer(answer));
  EXPECT_TRUE(std::string_view(answer.data(), got).starts_with("HTTP/1.1 503"));
  boost::system::error_code ended;
  while (!ended) (void)stream.read_some(asio::buffer(answer), ended);
  EXPECT_EQ(ended, asio::error::eof);
}

TEST_F(TlsApiTest, AnIpv4AddressIsToldAsSuchByAListenerForBoth) {
  auto both = HttpServer::on_tcp(
      io_, {.host = "::", .port = 0},
      [](const HttpRequest& request) {
        return HttpReply{.status = 200, .content_type = "text/plain", .body = request.peer.address};
      },
      tls_);
  if (!both) GTEST_SKIP() << both.error().message;
  asio::post(io_, [&] { (*both)->start(); });
  api_.port = (*both)->port();
  EXPECT_EQ(ask(), "127.0.0.1");
  std::promise<void> stopped;
  asio::post(io_, [&] {
    (*both)->stop();
    both->reset();  // where its loop runs
    stopped.set_value();
  });
  stopped.get_future().wait();
}

}  // namespace
}  // namespace te
