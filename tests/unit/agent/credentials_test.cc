// SPDX-License-Identifier: Apache-2.0
#include "host-agent/io/credentials.h"

#include <gtest/gtest.h>

#include <fstream>

#include "tests/support/certificates.h"

namespace te::agent {
namespace {

class CredentialsTest : public testing::Test {
 protected:
  Credentials load() { return Credentials::load(files_, "h1").value(); }
  /// Replaces a file as a tool that rotates certificates would, or breaks it.
  static void write(const std::string& path, const std::string& text) { std::ofstream(path, std::ios::trunc) << text; }

  te::test::CertificateAuthority authority_;
  TlsFiles files_ = authority_.issue("h1");
};

TEST_F(CredentialsTest, UnchangedFilesAreNotReadAgain) {
  Credentials credentials = load();
  const auto first = credentials.current();
  EXPECT_EQ(credentials.current(), first);
  EXPECT_EQ(credentials.renewals(), 0U);
}

TEST_F(CredentialsTest, NextSessionUsesTheNewFiles) {
  Credentials credentials = load();
  const auto first = credentials.current();
  authority_.issue("h1");  // over the same files
  const auto second = credentials.current();
  EXPECT_NE(second, first);
  EXPECT_EQ(credentials.current(), second);
  EXPECT_EQ(credentials.renewals(), 1U);
}

TEST_F(CredentialsTest, BrokenNewFilesLeaveTheOldOnesAndAreReadOnce) {
  for (const std::string* path : {&files_.certificate, &files_.key, &files_.ca}) {
    files_ = authority_.issue("h1");
    Credentials credentials = load();
    const auto first = credentials.current();
    const std::string good = [&] {
      std::ifstream file(*path);
      return std::string(std::istreambuf_iterator<char>(file), {});
    }();
    write(*path, "broken\n");
    EXPECT_EQ(credentials.current(), first) << *path;
    EXPECT_EQ(credentials.current(), first) << *path;
    EXPECT_EQ(credentials.failures(), 1U) << *path;
    write(*path, good);
    EXPECT_NE(credentials.current(), first) << *path;
  }
}

TEST_F(CredentialsTest, CertificateWithoutItsKeyYetLeavesTheOldOnes) {
  Credentials credentials = load();
  const auto first = credentials.current();
  const TlsFiles other = authority_.issue("h2");
  std::ifstream key(other.key);
  write(files_.key, std::string(std::istreambuf_iterator<char>(key), {}));
  EXPECT_EQ(credentials.current(), first);
}

TEST_F(CredentialsTest, CertificateOfAnotherNodeIsRefused) {
  const auto refused = Credentials::load(authority_.issue("h2"), "h1");
  ASSERT_FALSE(refused);
  EXPECT_NE(refused.error().message.find("is for 'h2', but this node is 'h1'"), std::string::npos);
}

TEST_F(CredentialsTest, ReloadReadsUnchangedFilesToo) {
  Credentials credentials = load();
  const auto first = credentials.current();
  EXPECT_TRUE(credentials.reload());
  EXPECT_NE(credentials.current(), first);
}

TEST_F(CredentialsTest, TellsHowLongItIsValid) {
  const auto left_s = load().seconds_left();
  ASSERT_TRUE(left_s) << left_s.error().message;
  EXPECT_GT(*left_s, 3000);
  EXPECT_LE(*left_s, 3600);
}

TEST_F(CredentialsTest, MissingFileIsNamed) {
  files_.key += ".none";
  const auto refused = Credentials::load(files_, "h1");
  ASSERT_FALSE(refused);
  EXPECT_NE(refused.error().message.find(files_.key), std::string::npos);
}

}  // namespace
}  // namespace te::agent
