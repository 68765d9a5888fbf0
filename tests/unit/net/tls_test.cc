// SPDX-License-Identifier: Apache-2.0
#include "common/net/tls.h"

#include <gtest/gtest.h>

#include "tests/support/certificates.h"
#include "tests/unit/net/tls_pair.h"

namespace te::test {
namespace {

TEST(Tls, EachEndLearnsTheOthersCommonName) {
  CertificateAuthority authority;
  TlsPair pair;
  pair.connect(authority.issue("te-controller"), authority.issue("h1"));
  ASSERT_FALSE(pair.server_error) << pair.server_error.message();
  EXPECT_EQ(peer_common_name(*pair.server).value(), "h1");
  EXPECT_EQ(peer_common_name(*pair.client).value(), "te-controller");
}

TEST(Tls, RefusesACertificateOfAnotherAuthority) {
  CertificateAuthority authority;
  CertificateAuthority stranger;
  TlsFiles files = stranger.issue("h1");
  files.ca = authority.issue("unused").ca;
  TlsPair pair;
  pair.connect(authority.issue("te-controller"), files);
  EXPECT_TRUE(pair.server_error);
}

TEST(Tls, NamesTheFileThatCannotBeUsed) {
  CertificateAuthority authority;
  TlsFiles files = authority.issue("h1");
  files.key = "/nonexistent.key";
  const auto context = make_tls_context(files, TlsSide::kClient);
  ASSERT_FALSE(context.ok());
  EXPECT_NE(context.error().message.find("/nonexistent.key"), std::string::npos);
}

TEST(Tls, RefusesAKeyThatDoesNotFitTheCertificate) {
  CertificateAuthority authority;
  TlsFiles files = authority.issue("h1");
  files.key = authority.issue("h2").key;
  EXPECT_FALSE(make_tls_context(files, TlsSide::kClient).ok());
}

TEST(Tls, ReadsTheCommonNameOfACertificateFile) {
  CertificateAuthority authority;
  const TlsFiles files = authority.issue("h7");
  EXPECT_EQ(certificate_common_name(files.certificate).value(), "h7");
  EXPECT_FALSE(certificate_common_name(files.key).ok());
}

}  // namespace
}  // namespace te::test
