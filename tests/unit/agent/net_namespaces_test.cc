// SPDX-License-Identifier: Apache-2.0
#include "host-agent/io/net_namespaces.h"

#include <gtest/gtest.h>
#include <net/if.h>
#include <sched.h>
#include <unistd.h>

#include <cerrno>
#include <chrono>
#include <filesystem>
#include <fstream>
#include <future>
#include <optional>
#include <string>
#include <system_error>
#include <thread>
#include <utility>
#include <vector>

namespace te::agent {
namespace {

std::string here() { return std::filesystem::read_symlink("/proc/thread-self/ns/net").string(); }

/// A network namespace that lasts as long as a thread in it.
class Pod {
 public:
  Pod() {
    std::promise<bool> entered;
    auto is_entered = entered.get_future();
    thread_ = std::thread([this, &entered] {
      path_ = "/proc/self/task/" + std::to_string(::gettid()) + "/ns/net";
      const bool made = ::unshare(CLONE_NEWNET) == 0;
      if (made) name_ = here();
      entered.set_value(made);
      end_.get_future().wait();
    });
    made_ = is_entered.get();
  }
  Pod(const Pod&) = delete;
  Pod& operator=(const Pod&) = delete;
  ~Pod() { end(); }
  void end() {
    if (!thread_.joinable()) return;
    end_.set_value();
    thread_.join();
    // Joined is not yet gone from /proc.
    const auto deadline = std::chrono::steady_clock::now() + std::chrono::seconds(10);
    std::error_code ignored;
    while (std::filesystem::exists(path_, ignored) && std::chrono::steady_clock::now() < deadline)
      std::this_thread::yield();
  }
  [[nodiscard]] bool made() const { return made_; }
  [[nodiscard]] const std::string& path() const { return path_; }
  [[nodiscard]] const std::string& name() const { return name_; }
  [[nodiscard]] std::vector<NicName> nic() const {
    return {{.interface = "lo"}, {.interface = "eth0", .netns = path_}};
  }

 private:
  std::string path_;
  std::string name_;  // net:[INODE]
  bool made_ = false;
  std::promise<void> end_;
  std::thread thread_;
};

class NetNamespacesTest : public testing::Test {
 protected:
  void SetUp() override {
    pod_.emplace();
    if (!pod_->made()) GTEST_SKIP() << "needs CAP_SYS_ADMIN to make network namespaces";
  }
  std::string seen_in(NetNamespaces& namespaces, const std::string& netns) {
    std::string seen;
    const auto entered = namespaces.run_in(netns, [&] { seen = here(); });
    return entered ? seen : entered.error().message;
  }
  std::optional<Pod> pod_;
};

TEST_F(NetNamespacesTest, WorkIsDoneInTheNamespaceNamedAndTheCallerStays) {
  const std::string before = here();
  NetNamespaces namespaces(pod_->nic());
  EXPECT_EQ(seen_in(namespaces, pod_->path()), pod_->name());
  EXPECT_EQ(seen_in(namespaces, ""), before);
  EXPECT_EQ(here(), before);
  EXPECT_NE(pod_->name(), before);
}

TEST_F(NetNamespacesTest, NumberIsTheInodeAndTheAgentsOwnHasNone) {
  const std::string own = "/proc/self/ns/net";
  NetNamespaces namespaces(
      std::vector<NicName>{{.interface = "a", .netns = pod_->path()}, {.interface = "b", .netns = own}});
  EXPECT_EQ("net:[" + std::to_string(namespaces.number_of(pod_->path())) + "]", pod_->name());
  EXPECT_EQ(namespaces.number_of(own), 0U) << "named by a path, yet the same: its pins keep their names";
  std::vector<std::pair<std::uint64_t, std::string>> visited;
  namespaces.run_in_each([&](std::uint64_t number) { visited.emplace_back(number, here()); });
  ASSERT_EQ(visited.size(), 2U) << "the agent's own once";
  EXPECT_EQ(visited[0], std::pair(std::uint64_t{0}, here()));
  EXPECT_EQ(visited[1], std::pair(namespaces.number_of(pod_->path()), pod_->name()));
}

TEST_F(NetNamespacesTest, EndIsSeenAndNothingIsDoneThereAnyMore) {
  NetNamespaces namespaces(pod_->nic());
  EXPECT_TRUE(namespaces.ended().empty());
  pod_->end();
  ASSERT_EQ(namespaces.ended(), std::vector{pod_->path()});
  EXPECT_EQ(seen_in(namespaces, pod_->path()), pod_->name()) << "held until it is left";
  namespaces.leave(pod_->path());
  EXPECT_TRUE(namespaces.ended().empty()) << "told twice";
  EXPECT_EQ(seen_in(namespaces, pod_->path()),
            "network namespace " + pod_->path() + " ended; restart the agent to enter the one that is there then");
  EXPECT_EQ(namespaces.number_of(pod_->path()), 0U);
}

TEST_F(NetNamespacesTest, AnotherNamespaceBehindThePathIsAnEndToo) {
  const auto link = std::filesystem::path(testing::TempDir()) / ("te-netns-" + std::to_string(::getpid()));
  const Pod other;
  ASSERT_TRUE(other.made());
  std::filesystem::create_symlink(pod_->path(), link);
  NetNamespaces namespaces(std::vector<NicName>{{.interface = "eth0", .netns = link}});
  EXPECT_TRUE(namespaces.ended().empty());
  std::filesystem::remove(link);
  std::filesystem::create_symlink(other.path(), link);
  EXPECT_EQ(namespaces.ended(), std::vector<std::string>{link});
  std::filesystem::remove(link);
}

TEST_F(NetNamespacesTest, CapabilitiesGoFromTheThreadsToo) {
  NetNamespaces namespaces(pod_->nic());
  const auto dropped = namespaces.keep_only_capabilities({});
  ASSERT_TRUE(dropped) << dropped.error().message;
  int failed = 0;
  ASSERT_TRUE(namespaces.run_in(pod_->path(), [&] { failed = ::unshare(CLONE_NEWNET) == 0 ? 0 : errno; }));
  EXPECT_EQ(failed, EPERM);
  EXPECT_TRUE(Pod().made()) << "of this thread they were not given up";
}

TEST(NetNamespaces, WhatCannotBeEnteredIsSaid) {
  const auto file = std::filesystem::path(testing::TempDir()) / ("te-no-netns-" + std::to_string(::getpid()));
  std::ofstream(file) << "x";
  const std::vector<NicName> nics{{.interface = "a", .netns = file}, {.interface = "b", .netns = file.string() + "-"}};
  NetNamespaces namespaces(nics);
  std::filesystem::remove(file);
  const auto no_namespace = namespaces.run_in(nics[0].netns, [] { FAIL(); });
  ASSERT_FALSE(no_namespace);
  EXPECT_NE(no_namespace.error().message.find("is no network namespace"), std::string::npos)
      << no_namespace.error().message;
  const auto missing = namespaces.run_in(nics[1].netns, [] { FAIL(); });
  ASSERT_FALSE(missing);
  EXPECT_NE(missing.error().message.find("open network namespace " + nics[1].netns), std::string::npos);
  EXPECT_TRUE(namespaces.ended().empty());
  const auto unknown = namespaces.run_in("/somewhere/else", [] { FAIL(); });
  ASSERT_FALSE(unknown);
}

}  // namespace
}  // namespace te::agent
