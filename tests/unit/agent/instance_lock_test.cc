// SPDX-License-Identifier: Apache-2.0
#include "host-agent/io/instance_lock.h"

#include <gtest/gtest.h>
#include <unistd.h>

#include <filesystem>

namespace te::agent {
namespace {

class InstanceLockTest : public testing::Test {
 protected:
  ~InstanceLockTest() override { std::filesystem::remove_all(directory_); }

  [[nodiscard]] AgentConfig config(const std::string& node) const {
    AgentConfig made;
    made.node = node;
    made.bpffs = "/proc";
    made.run_directory = directory_ + "/a/b";
    return made;
  }

  std::string directory_ = testing::TempDir() + "te-lock-" + std::to_string(::getpid());
};

TEST_F(InstanceLockTest, SecondAgentOfANodeIsToldWhoIsAtWork) {
  const auto first = InstanceLock::take(config("h1"));
  ASSERT_TRUE(first) << first.error().message;
  const auto second = InstanceLock::take(config("h1"));
  ASSERT_FALSE(second);
  EXPECT_TRUE(
      second.error().message.starts_with("an agent of node 'h1' is at work (it holds " + directory_ + "/a/b/h1@"))
      << second.error().message;
  EXPECT_NE(second.error().message.find(", process " + std::to_string(::getpid()) + "); stop it first"),
            std::string::npos)
      << second.error().message;
}

TEST_F(InstanceLockTest, IsFreeAgainWhenItsHolderEnds) {
  { ASSERT_TRUE(InstanceLock::take(config("h1"))); }
  EXPECT_TRUE(InstanceLock::take(config("h1")));
}

TEST_F(InstanceLockTest, OtherNodesDoNotMind) {
  const auto first = InstanceLock::take(config("h1"));
  EXPECT_TRUE(InstanceLock::take(config("h2")));
}

TEST_F(InstanceLockTest, SameNameOnAnotherBpffsDoesNotMind) {
  const auto first = InstanceLock::take(config("h1"));
  AgentConfig other = config("h1");
  other.bpffs = "/dev";
  EXPECT_TRUE(InstanceLock::take(other));
}

TEST_F(InstanceLockTest, OtherPathToTheSameBpffsIsTheSameNode) {
  const auto first = InstanceLock::take(config("h1"));
  AgentConfig same = config("h1");
  same.bpffs = "/proc/../proc/";
  EXPECT_FALSE(InstanceLock::take(same));
}

TEST_F(InstanceLockTest, DirectoryThatCannotBeMadeIsNamed) {
  AgentConfig made = config("h1");
  made.run_directory = "/proc/te-run";
  const auto lock = InstanceLock::take(made);
  ASSERT_FALSE(lock);
  EXPECT_TRUE(lock.error().message.starts_with("make /proc/te-run: ")) << lock.error().message;
}

}  // namespace
}  // namespace te::agent
