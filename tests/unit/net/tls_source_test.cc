// SPDX-License-Identifier: Apache-2.0
#include "common/net/tls_source.h"

#include <gtest/gtest.h>

#include <filesystem>

#include "common/net/pace.h"
#include "common/os/file.h"
#include "tests/support/certificates.h"

namespace te::test {
namespace {

void copy(const std::string& from, const std::string& to) { ASSERT_TRUE(replace_file(to, read_file(from).value())); }

TEST(TlsSource, FollowsItsFiles) {
  CertificateAuthority authority;
  const TlsFiles files = authority.issue("te-controller");
  const auto source = TlsSource::open(files, PeerCertificate::kRequired);
  ASSERT_TRUE(source);
  const auto first = (*source)->context();
  EXPECT_FALSE((*source)->refresh(false).value());
  EXPECT_EQ((*source)->context(), first);
  (void)authority.issue("te-controller");  // the same files anew
  EXPECT_TRUE((*source)->refresh(false).value());
  EXPECT_NE((*source)->context(), first);
  EXPECT_TRUE((*source)->refresh(true).value());
}

TEST(TlsSource, KeepsWhatWorksWhenNewFilesDoNotAndSaysSoOnce) {
  CertificateAuthority authority;
  const TlsFiles files = authority.issue("te-controller");
  const auto source = TlsSource::open(files, PeerCertificate::kRequired);
  ASSERT_TRUE(source);
  const auto first = (*source)->context();
  copy(authority.issue("other").key, files.key);
  const auto refreshed = (*source)->refresh(false);
  ASSERT_FALSE(refreshed);
  EXPECT_NE(refreshed.error().message.find(files.key), std::string::npos);
  EXPECT_EQ((*source)->context(), first);
  EXPECT_FALSE((*source)->refresh(false).value());
  copy(authority.issue("other").certificate, files.certificate);
  copy(authority.folder() + "/other.key", files.key);
  EXPECT_TRUE((*source)->refresh(false).value());
}

TEST(TlsSource, SaysWhichRevocationListCannotBeUsed) {
  CertificateAuthority authority;
  TlsFiles files = authority.issue("te-controller");
  files.crl = files.certificate;
  const auto source = TlsSource::open(files, PeerCertificate::kRequired);
  ASSERT_FALSE(source);
  EXPECT_NE(source.error().message.find("revocation list " + files.crl), std::string::npos);
}

TEST(FileWatch, SeesFilesComeAndGo) {
  CertificateAuthority authority;
  const std::string path = authority.folder() + "/watched";
  FileWatch watch({path});
  EXPECT_FALSE(watch.changed());
  ASSERT_TRUE(replace_file(path, "1"));
  EXPECT_TRUE(watch.changed());
  EXPECT_FALSE(watch.changed());
  std::filesystem::remove(path);
  EXPECT_TRUE(watch.changed());
}

TEST(Pace, LetsABurstThroughAndThenKeepsTheRate) {
  Pace pace(10, 5);
  std::int64_t now_ns = 1'000'000'000;
  for (int i = 0; i < 5; ++i) EXPECT_EQ(pace.take(1, now_ns), 0);
  EXPECT_EQ(pace.take(1, now_ns), 100'000'000);
  EXPECT_FALSE(pace.try_take(1, now_ns));
  now_ns += 200'000'000;
  EXPECT_TRUE(pace.try_take(1, now_ns));
  EXPECT_FALSE(pace.is_full(now_ns));
  now_ns += 3'600'000'000'000;
  EXPECT_TRUE(pace.is_full(now_ns));
  EXPECT_TRUE(pace.try_take(5, now_ns));
  EXPECT_FALSE(pace.try_take(1, now_ns));
}

TEST(Printable, CutsAndReplacesControlCharacters) {
  EXPECT_EQ(printable("h1\n\x1b[2J"), "h1??[2J");
  EXPECT_EQ(printable(std::string(200, 'x')).size(), 80U);
}

}  // namespace
}  // namespace te::test
