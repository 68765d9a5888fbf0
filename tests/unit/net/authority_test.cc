// SPDX-License-Identifier: Apache-2.0
#include "common/net/authority.h"

#include <gtest/gtest.h>
#include <stdlib.h>
#include <sys/stat.h>

#include <filesystem>

#include "common/os/file.h"
#include "tests/unit/net/tls_pair.h"

namespace te::test {
namespace {

constexpr std::int64_t kNowS = 1'700'000'000;

class AuthorityTest : public ::testing::Test {
 protected:
  AuthorityTest() {
    std::string pattern = ::testing::TempDir() + "te-authority-XXXXXX";
    folder_ = ::mkdtemp(pattern.data());
    directory_ = folder_ + "/ca";
  }
  ~AuthorityTest() override { std::filesystem::remove_all(folder_); }

  Authority create() {
    auto made = Authority::create(directory_, 10);
    EXPECT_TRUE(made) << (made ? "" : made.error().message);
    return *std::move(made);
  }
  TlsFiles issue(const Authority& authority, const CertificateOrder& order) {
    const std::string key = make_private_key().value();
    const std::string certificate = authority.certify(make_request(key, order.name).value(), order).value();
    TlsFiles files{folder_ + "/" + order.name + ".pem", folder_ + "/" + order.name + ".key", directory_ + "/ca.pem"};
    EXPECT_TRUE(replace_file(files.certificate, certificate));
    EXPECT_TRUE(replace_file(files.key, key));
    return files;
  }

  std::string folder_;
  std::string directory_;
};

TEST_F(AuthorityTest, KeepsItsKeyToItselfAndIsMadeOnce) {
  (void)create();
  struct stat found {};
  ASSERT_EQ(::stat((directory_ + "/ca.key").c_str(), &found), 0);
  EXPECT_EQ(found.st_mode & 0777U, 0600U);
  const auto second = Authority::create(directory_, 10);
  ASSERT_FALSE(second);
  EXPECT_NE(second.error().message.find("there is an authority already"), std::string::npos);
  EXPECT_TRUE(Authority::open(directory_));
}

TEST_F(AuthorityTest, IssuesWhatBothEndsOfAConnectionAccept) {
  const Authority authority = create();
  TlsFiles server = issue(authority, {"te-controller", CertificateUse::kServer, {"10.0.0.5", "te.example"}, 5});
  server.crl = directory_ + "/crl.pem";
  TlsPair pair;
  pair.connect(server, issue(authority, {.name = "h1", .hosts = {}}));
  ASSERT_FALSE(pair.server_error) << pair.server_error.message();
  ASSERT_FALSE(pair.client_error) << pair.client_error.message();
  EXPECT_EQ(peer_common_name(*pair.server).value(), "h1");
  EXPECT_TRUE(pair.problem->reason.empty());
}

TEST_F(AuthorityTest, ANodeCannotStandInForTheController) {
  const Authority authority = create();
  TlsPair pair;
  pair.connect(issue(authority, {.name = "h2", .hosts = {}}), issue(authority, {.name = "h1", .hosts = {}}));
  EXPECT_TRUE(pair.client_error);
}

TEST_F(AuthorityTest, ARevokedCertificateIsRefusedWithNameAndSerial) {
  const Authority authority = create();
  TlsFiles server = issue(authority, {"te-controller", CertificateUse::kServer, {}, 5});
  server.crl = directory_ + "/crl.pem";
  const TlsFiles h1 = issue(authority, {.name = "h1", .hosts = {}});
  const TlsFiles h2 = issue(authority, {.name = "h2", .hosts = {}});
  const auto revoked = authority.revoke("h1");
  ASSERT_TRUE(revoked) << revoked.error().message;
  ASSERT_EQ(revoked->size(), 1U);
  TlsPair refused;
  refused.connect(server, h1);
  EXPECT_TRUE(refused.server_error);
  EXPECT_TRUE(refused.problem->revoked);
  EXPECT_EQ(refused.problem->text(""),
            "certificate of 'h1', serial " + revoked->front().serial + ": certificate revoked");
  TlsPair good;
  good.connect(server, h2);
  EXPECT_FALSE(good.server_error);
}

TEST_F(AuthorityTest, ASessionsCertificateCanBeCheckedAgainByANewerList) {
  const Authority authority = create();
  TlsFiles server = issue(authority, {"te-controller", CertificateUse::kServer, {}, 5});
  server.crl = directory_ + "/crl.pem";
  TlsPair pair;
  pair.connect(server, issue(authority, {.name = "h1", .hosts = {}}));
  const auto peer = peer_identity(pair.server->native_handle());
  ASSERT_TRUE(peer);
  EXPECT_TRUE(check_again(*peer, *pair.server_context));
  ASSERT_TRUE(authority.revoke(peer->facts.serial));
  const auto newer = make_tls_context(server, TlsSide::kServer);
  ASSERT_TRUE(newer);
  const auto again = check_again(*peer, **newer);
  ASSERT_FALSE(again);
  EXPECT_EQ(again.error().message, "certificate revoked");
}

TEST_F(AuthorityTest, ListsWhatItIssuedAndWhatOfThatIsRevoked) {
  const Authority authority = create();
  (void)issue(authority, {.name = "h2", .hosts = {}});
  (void)issue(authority, {.name = "h1", .hosts = {}});
  ASSERT_TRUE(authority.revoke("h2"));
  const auto all = authority.list();
  ASSERT_TRUE(all);
  ASSERT_EQ(all->size(), 2U);
  EXPECT_EQ((*all)[0].facts.name, "h1");
  EXPECT_FALSE((*all)[0].revoked);
  EXPECT_TRUE((*all)[1].revoked);
  const auto twice = authority.revoke("h2");
  ASSERT_FALSE(twice);
  EXPECT_NE(twice.error().message.find("is revoked already"), std::string::npos);
  EXPECT_FALSE(authority.revoke("nobody"));
}

TEST_F(AuthorityTest, SignsNoRequestThatIsBrokenOrOfAWeakKey) {
  const Authority authority = create();
  const std::string request = make_request(make_private_key().value(), "h1").value();
  EXPECT_EQ(requested_name(request).value(), "h1");
  std::string forged = request;
  forged[forged.size() / 2] = forged[forged.size() / 2] == 'A' ? 'B' : 'A';
  EXPECT_FALSE(requested_name(forged));
  EXPECT_FALSE(authority.certify("no request", {.name = "h1", .hosts = {}}));
  EXPECT_FALSE(authority.certify(request, {"te-controller", CertificateUse::kServer, {"a, IP:1.2.3.4"}, 1}));
}

TEST_F(AuthorityTest, ATokenIsGoodForItsNodeInItsTimeAndOnce) {
  (void)create();
  const EnrolmentTokens tokens(directory_);
  const auto token = tokens.make("h1", 60, kNowS);
  ASSERT_TRUE(token) << token.error().message;
  EXPECT_EQ(token->size(), 32U);
  EXPECT_EQ(tokens.check(*token, "h1", kNowS + 59), TokenFault::kNone);
  EXPECT_EQ(tokens.check(*token, "h2", kNowS), TokenFault::kOtherNode);
  EXPECT_EQ(tokens.check(*token, "h1", kNowS + 60), TokenFault::kExpired);
  EXPECT_EQ(tokens.check("0123", "h1", kNowS), TokenFault::kUnknown);
  EXPECT_TRUE(tokens.use_up(*token));
  EXPECT_EQ(tokens.check(*token, "h1", kNowS), TokenFault::kUsed);
  EXPECT_FALSE(tokens.use_up(*token));
}

TEST_F(AuthorityTest, KeepsOnlyTheHashOfAToken) {
  (void)create();
  const auto token = EnrolmentTokens(directory_).make("h1", 60, kNowS);
  ASSERT_TRUE(token);
  int files = 0;
  for (const auto& file : std::filesystem::directory_iterator(directory_ + "/tokens")) {
    ++files;
    EXPECT_EQ(file.path().filename().string().find(*token), std::string::npos);
    EXPECT_EQ(read_file(file.path()).value().find(*token), std::string::npos);
  }
  EXPECT_EQ(files, 1);
}

TEST(CertificateName, IsPlain) {
  for (const char* good : {"h1", "gpu-001.rack_2", "A"}) EXPECT_TRUE(is_certificate_name(good)) << good;
  for (const char* bad : {"", ".", "../x", "-x", "a b", "a/b", "a\n"}) EXPECT_FALSE(is_certificate_name(bad)) << bad;
}

}  // namespace
}  // namespace te::test
