// SPDX-License-Identifier: Apache-2.0
#include "host-agent/io/qp_source.h"

#include <gtest/gtest.h>
#include <sys/stat.h>
#include <unistd.h>

#include <filesystem>

#include "common/os/file.h"

namespace te::agent {
namespace {

class FileQpSourceTest : public testing::Test {
 protected:
  ~FileQpSourceTest() override { std::filesystem::remove(path_); }

  void write(const std::string& text) { ASSERT_TRUE(replace_file(path_, text)); }
  QpSource::Reading poll() { return source_->poll(0); }

  std::string path_ = testing::TempDir() + "te-qp-" + std::to_string(::getpid()) + ".json";
  std::unique_ptr<QpSource> source_ = make_qp_source({QpSourceConfig::Kind::kFile, path_});
};

constexpr const char* kOne = R"([{"ifname":"rxe0","lqpn":17,"rqpn":18,"type":"RC","state":"RTS"}])";
constexpr const char* kTwo = R"([{"ifname":"rxe0","lqpn":19,"rqpn":20,"type":"RC","state":"RTS"}])";

TEST_F(FileQpSourceTest, MissingFileIsOffWithTheReason) {
  const auto reading = poll();
  EXPECT_EQ(reading.state, v1::Source::OFF);
  EXPECT_NE(reading.reason.find("No such file"), std::string::npos);
}

TEST_F(FileQpSourceTest, FileThatAppearsIsRead) {
  poll();
  write(kOne);
  const auto reading = poll();
  EXPECT_EQ(reading.state, v1::Source::ON);
  EXPECT_EQ(reading.table, (std::vector<QueuePair>{{"rxe0", 17, 18}}));
}

TEST_F(FileQpSourceTest, UnchangedFileGivesNoNewTable) {
  write(kOne);
  EXPECT_TRUE(poll().table);
  const auto again = poll();
  EXPECT_EQ(again.state, v1::Source::ON);
  EXPECT_FALSE(again.table);
}

TEST_F(FileQpSourceTest, ReplacedFileIsReadAgain) {
  write(kOne);
  poll();
  write(kTwo);
  EXPECT_EQ(poll().table, (std::vector<QueuePair>{{"rxe0", 19, 20}}));
}

TEST_F(FileQpSourceTest, BadFileIsOffUntilItIsGoodAgain) {
  write("[{");
  EXPECT_EQ(poll().state, v1::Source::OFF);
  write(kOne);
  EXPECT_EQ(poll().state, v1::Source::ON);
}

TEST_F(FileQpSourceTest, PipeIsRefusedWithoutWaiting) {
  ASSERT_EQ(::mkfifo(path_.c_str(), 0600), 0);
  const auto reading = poll();
  EXPECT_EQ(reading.state, v1::Source::OFF);
  EXPECT_EQ(reading.reason, "read " + path_ + ": not a regular file");
}

TEST_F(FileQpSourceTest, DirectoryIsRefused) {
  std::filesystem::create_directory(path_);
  EXPECT_EQ(poll().reason, "read " + path_ + ": not a regular file");
}

TEST_F(FileQpSourceTest, HugeFileIsRefused) {
  write("");
  std::filesystem::resize_file(path_, std::uintmax_t{1} << 40);
  const auto reading = poll();
  EXPECT_EQ(reading.state, v1::Source::OFF);
  EXPECT_EQ(reading.reason, "read " + path_ + ": larger than 8388608 bytes");
}

TEST(QpSource, NoneIsOffBecauseItWasAskedFor) {
  EXPECT_EQ(make_qp_source({QpSourceConfig::Kind::kNone, {}})->poll(0).reason, "qp_source: none");
}

TEST(QpSource, NetlinkIsOnOrSaysWhyNot) {
  const auto reading = make_qp_source({QpSourceConfig::Kind::kNetlink, {}})->poll(0);
  EXPECT_EQ(reading.state == v1::Source::ON, reading.table.has_value());
  EXPECT_FALSE(reading.reason.empty());
}

}  // namespace
}  // namespace te::agent
