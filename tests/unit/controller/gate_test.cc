// SPDX-License-Identifier: Apache-2.0
// Who may do what, without connections: every refusal is answered, logged with who and what, and counted.
#include "te-controller/app/gate.h"

#include <google/protobuf/util/json_util.h>
#include <gtest/gtest.h>
#include <spdlog/spdlog.h>

#include "te-controller/app/event_log.h"
#include "tests/unit/controller/pki_folder.h"
#include "topology/builder.h"

namespace te {
namespace {

constexpr std::int64_t kNowS = 1'700'000'000;

/// What was logged, while it lives.
class LogCapture {
 public:
  LogCapture() : before_(spdlog::default_logger()) {
    spdlog::set_default_logger(std::make_shared<spdlog::logger>("test", events_.sink()));
  }
  LogCapture(const LogCapture&) = delete;
  LogCapture& operator=(const LogCapture&) = delete;
  ~LogCapture() { spdlog::set_default_logger(before_); }
  [[nodiscard]] bool has(const std::string& text) const {
    const v1::EventList all = events_.after(0, 1000);
    for (const v1::EventView& event : all.events())
      if (event.text().find(text) != std::string::npos) return true;
    return false;
  }

 private:
  EventLog events_{0};
  std::shared_ptr<spdlog::logger> before_;
};

HttpRequest request(const std::string& method, const std::string& target) { return *parse_target(method, target); }

class GateTest : public ::testing::Test {
 protected:
  HttpReply by_certificate(const std::string& name, const std::string& method, const std::string& target) {
    HttpRequest asked = request(method, target);
    asked.peer = {.address = "10.0.0.9", .user_id = {}, .certificate_name = name, .encrypted = true};
    return gate_.answer(asked);
  }
  HttpReply by_token(const std::string& authorization, const std::string& method, const std::string& target) {
    HttpRequest asked = request(method, target);
    asked.peer = {.address = "10.0.0.9", .user_id = {}, .certificate_name = "", .encrypted = true};
    asked.authorization = authorization;
    return gate_.answer(asked);
  }
  HttpReply enrol(const std::string& node, const std::string& token, const std::string& csr) {
    v1::EnrolRequest wanted;
    wanted.set_node(node);
    wanted.set_token(token);
    wanted.set_csr(csr);
    HttpRequest asked = request("POST", "/v1/enrol");
    (void)google::protobuf::util::MessageToJsonString(wanted, &asked.body);
    asked.peer = {.address = address_, .user_id = {}, .certificate_name = "", .encrypted = true};
    return gate_.answer(asked);
  }
  static std::string csr_of(const std::string& name) { return make_request(make_private_key().value(), name).value(); }

  LogCapture log_;
  test::PkiFolder pki_;
  std::int64_t now_ns_ = 1'000'000'000;
  std::int64_t wall_s_ = kNowS;
  std::string address_ = "10.0.0.9";
  Engine engine_{build_clos({}), {}, 1'000'000'000, 1'700'000'000'000'000};
  Api api_{engine_,
           {.version = "1",
            .topology = "t.yaml",
            .warnings = [] { return std::vector<std::string>(); },
            .wake = [] {},
            .now_ns = [] { return std::int64_t{2'000'000'000}; }}};
  Enrolment enrolment_{pki_.directory(), 30, {[this] { return now_ns_; }, [this] { return wall_s_; }}};
  Gate gate_{
      api_, enrolment_,
      Access({{"alice", Role::kOperate}, {"bob", Role::kView}}, {{"grafana", Role::kView, sha256_hex("secret")}})};
};

TEST_F(GateTest, WhoeverMayOpenTheUnixSocketMayDoAll) {
  HttpRequest asked = request("POST", "/v1/act?on=true");
  asked.peer.user_id = 1000;
  EXPECT_EQ(gate_.answer(asked).status, 200);
  EXPECT_TRUE(log_.has("uid 1000 asked for POST /v1/act?on=true: done"));
}

TEST_F(GateTest, ARoleMayDoItsPartAndNoMore) {
  EXPECT_EQ(by_certificate("bob", "GET", "/v1/status").status, 200);
  EXPECT_EQ(by_certificate("alice", "POST", "/v1/pause").status, 200);
  EXPECT_TRUE(log_.has("certificate alice at 10.0.0.9 asked for POST /v1/pause: done"));
  const HttpReply refused = by_certificate("bob", "POST", "/v1/pause");
  EXPECT_EQ(refused.status, 403);
  EXPECT_EQ(refused.body,
            "{\"error\":\"POST /v1/pause needs the role 'operate', and certificate bob at 10.0.0.9 has 'view'\"}\n");
  EXPECT_TRUE(log_.has("refused certificate bob at 10.0.0.9: POST /v1/pause needs the role 'operate'"));
  EXPECT_EQ(gate_.refused().at("role"), 1U);
}

TEST_F(GateTest, ACallNobodyKnowsNeedsTheHighestRole) {
  EXPECT_EQ(by_certificate("alice", "POST", "/v1/whatever").status, 403);
  EXPECT_EQ(by_certificate("alice", "DELETE", "/v1/act").status, 405);
  EXPECT_EQ(role_needed("POST", "/v1/whatever"), Role::kIsolate);
  EXPECT_EQ(role_needed("POST", "/v1/drain"), Role::kOperate);
}

TEST_F(GateTest, ACertificateWithoutARoleMayNothing) {
  const HttpReply refused = by_certificate("h1", "GET", "/v1/status");
  EXPECT_EQ(refused.status, 403);
  EXPECT_NE(refused.body.find("has 'none'"), std::string::npos);
}

TEST_F(GateTest, ATokenCountsByItsHash) {
  EXPECT_EQ(by_token("Bearer secret", "GET", "/v1/status").status, 200);
  EXPECT_EQ(by_token("Bearer secret", "POST", "/v1/pause").status, 403);
  EXPECT_EQ(by_token("Bearer other", "GET", "/v1/status").status, 401);
  EXPECT_EQ(by_token("Bearer " + sha256_hex("secret"), "GET", "/v1/status").status, 401);
  EXPECT_EQ(by_token("Basic c2VjcmV0", "GET", "/v1/status").status, 401);
  EXPECT_EQ(gate_.refused().at("unknown_token"), 3U);
  EXPECT_TRUE(log_.has("refused 10.0.0.9: GET /v1/status needs the role 'view': the token is not known here"));
  gate_.access().set_tokens({});
  EXPECT_EQ(by_token("Bearer secret", "GET", "/v1/status").status, 401);
}

TEST_F(GateTest, NobodyInParticularMayNothing) {
  EXPECT_EQ(by_certificate("", "GET", "/v1/status").status, 401);
  EXPECT_EQ(gate_.refused().at("unauthenticated"), 1U);
  HttpRequest plain = request("GET", "/v1/status");
  plain.peer.address = "10.0.0.9";
  plain.peer.certificate_name = "alice";
  EXPECT_EQ(gate_.answer(plain).status, 401);
}

TEST_F(GateTest, ANodeEnrolsWithItsTokenOnce) {
  const std::string token = EnrolmentTokens(pki_.directory()).make("h1", 60, kNowS).value();
  const HttpReply done = enrol("h1", token, csr_of("h1"));
  ASSERT_EQ(done.status, 200) << done.body;
  v1::EnrolReply reply;
  ASSERT_TRUE(google::protobuf::util::JsonStringToMessage(done.body, &reply).ok());
  EXPECT_EQ(facts_of_pem(reply.certificate(), "c")->name, "h1");
  EXPECT_EQ(reply.ca(), pki_.authority().certificate());
  EXPECT_EQ(pki_.authority().list()->size(), 1U);
  EXPECT_TRUE(
      log_.has("enrolled h1 at 10.0.0.9: certificate with serial " + facts_of_pem(reply.certificate(), "c")->serial));
  EXPECT_EQ(enrolment_.accepted(), 1U);

  EXPECT_EQ(enrol("h1", token, csr_of("h1")).status, 403);
  EXPECT_TRUE(log_.has("refused to enrol 'h1' at 10.0.0.9: used token"));
  EXPECT_EQ(enrolment_.refused().at("used_token"), 1U);
}

TEST_F(GateTest, AnotherNodesTokenAnOldOneAndAnUnknownOneAreRefused) {
  const std::string token = EnrolmentTokens(pki_.directory()).make("h1", 60, kNowS).value();
  EXPECT_EQ(enrol("h2", token, csr_of("h2")).status, 403);
  EXPECT_TRUE(log_.has("refused to enrol 'h2' at 10.0.0.9: token of another node"));
  EXPECT_EQ(enrol("h1", token, csr_of("h2")).status, 403);
  EXPECT_TRUE(log_.has("the certificate request is for 'h2'"));
  EXPECT_EQ(enrolment_.refused().at("other_node"), 2U);
  EXPECT_EQ(enrol("h1", std::string(32, '0'), csr_of("h1")).status, 403);
  EXPECT_EQ(enrolment_.refused().at("unknown_token"), 1U);
  EXPECT_EQ(enrol("h1", token, "no csr").status, 400);
  EXPECT_EQ(enrolment_.refused().at("bad_request"), 1U);
  wall_s_ += 60;
  EXPECT_EQ(enrol("h1", token, csr_of("h1")).status, 403);
  EXPECT_EQ(enrolment_.refused().at("expired_token"), 1U);
  EXPECT_EQ(enrolment_.accepted(), 0U);
  EXPECT_TRUE(pki_.authority().list()->empty());
}

TEST_F(GateTest, NobodyEnrolsAsTheController) {
  const std::string token = EnrolmentTokens(pki_.directory()).make("te-controller", 60, kNowS).value();
  EXPECT_EQ(enrol("te-controller", token, csr_of("te-controller")).status, 403);
  EXPECT_TRUE(pki_.authority().list()->empty());
}

TEST_F(GateTest, AnAddressMayTryTenTimesAMinute) {
  for (int i = 0; i < 10; ++i) EXPECT_EQ(enrol("h1", "0", csr_of("h1")).status, 403);
  EXPECT_EQ(enrol("h1", "0", csr_of("h1")).status, 429);
  EXPECT_EQ(enrolment_.refused().at("too_many"), 1U);
  address_ = "10.0.0.10";
  EXPECT_EQ(enrol("h1", "0", csr_of("h1")).status, 403);
  address_ = "fd00::1";
  for (int i = 0; i < 10; ++i) (void)enrol("h1", "0", "x");
  address_ = "fd00::2";  // of the same 64 bits
  EXPECT_EQ(enrol("h1", "0", "x").status, 429);
  address_ = "10.0.0.9";
  now_ns_ += 7'000'000'000;
  EXPECT_EQ(enrol("h1", "0", csr_of("h1")).status, 403);
}

TEST_F(GateTest, EnrollingNeedsTlsAndAnAuthority) {
  HttpRequest asked = request("POST", "/v1/enrol");
  asked.peer.user_id = 0;
  EXPECT_EQ(gate_.answer(asked).status, 403);
  Enrolment none("", 30, {[] { return std::int64_t{1}; }, [] { return kNowS; }});
  EXPECT_EQ(none.answer(asked).status, 404);
  EXPECT_EQ(none.refused().at("not_configured"), 1U);
}

TEST(EnrolRequest, IsReadStrictly) {
  EXPECT_TRUE(parse_enrol_request(R"({"node":"h1","token":"t","csr":"c"})"));
  for (const char* wrong : {"", "[]", "{}", R"({"node":"../h1","token":"t","csr":"c"})", R"({"node":"h1","csr":"c"})",
                            R"({"node":"h1","token":"t"})", R"({"node":"h1","token":"t","csr":"c","more":1})"})
    EXPECT_FALSE(parse_enrol_request(wrong)) << wrong;
}

TEST(ApiTokens, AreReadStrictly) {
  const std::string hash = sha256_hex("x");
  const auto tokens = parse_api_tokens("tokens: [{name: g, role: view, sha256: " + hash + "}]", "t.yaml");
  ASSERT_TRUE(tokens) << tokens.error().message;
  EXPECT_EQ(tokens->front().role, Role::kView);
  const std::vector<std::string> faulty{"tokens: [{name: g, role: king, sha256: " + hash + "}]",
                                        "tokens: [{name: g, role: view, sha256: abc}]",
                                        "tokens: [{name: g, role: view}]",
                                        "tokens: [{name: 'a b', role: view, sha256: " + hash + "}]",
                                        "tokens: x",
                                        "token: []"};
  for (const std::string& wrong : faulty) {
    const auto read = parse_api_tokens(wrong, "t.yaml");
    ASSERT_FALSE(read) << wrong;
    EXPECT_TRUE(read.error().message.starts_with("t.yaml:1: ")) << read.error().message;
  }
}

}  // namespace
}  // namespace te
