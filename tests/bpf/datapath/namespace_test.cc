// SPDX-License-Identifier: Apache-2.0
// Interfaces in several network namespaces, where indices and names of one are those of another.
#include <bpf/bpf.h>
#include <fcntl.h>
#include <sched.h>
#include <unistd.h>

#include <array>
#include <filesystem>
#include <optional>
#include <string>
#include <utility>

#include "tests/bpf/datapath/veth.h"

namespace te::agent {
namespace {

constexpr std::uint64_t kHere = 41;
constexpr std::uint64_t kThere = 42;

/// A pair of interfaces in a namespace of its own, which can be entered again.
class Place {
 public:
  Place() : netns_(::open("/proc/thread-self/ns/net", O_RDONLY | O_CLOEXEC)) {}
  [[nodiscard]] bool enter() const { return ::setns(netns_.get(), CLONE_NEWNET) == 0; }
  VethPair& veth() { return veth_; }

 private:
  VethPair veth_;  // first: it makes the namespace
  UniqueFd netns_;
};

class TwoPlaces : public BpfFixture {
 protected:
  [[nodiscard]] virtual AttachMode mode() const = 0;
  void SetUp() override {
    BpfFixture::SetUp();
    if (IsSkipped() || HasFatalFailure()) return;
    if (mode() == AttachMode::kTcx && !BpfDatapath::probe_tcx()) GTEST_SKIP() << "no TCX here";
    here_.emplace();
    there_.emplace();
    ASSERT_TRUE(here_->veth().ok() && there_->veth().ok());
    ASSERT_EQ(here_->veth().near_ifindex(), there_->veth().near_ifindex()) << "nothing to tell apart";
  }
  void attach_both() {
    for (const auto& [place, number] : {std::pair{&*here_, kHere}, std::pair{&*there_, kThere}}) {
      ASSERT_TRUE(place->enter());
      const auto attached = datapath().attach(VethPair::kNear, mode(), number);
      ASSERT_TRUE(attached) << attached.error().message;
    }
  }
  /// An agent that has NICs in both.
  [[nodiscard]] BpfDatapathOptions options() const {
    return {.pin_directory = pin_directory(), .in_each_netns = [this](const auto& work) {
              for (const auto& [place, number] : {std::pair{&*here_, kHere}, std::pair{&*there_, kThere}}) {
                ASSERT_TRUE(place->enter());
                work(number);
              }
            }};
  }
  void pass_one_each() {
    for (Place* place : {&*here_, &*there_}) ASSERT_TRUE(place->veth().pass(frame_of(build(plain_packet(false)))));
  }
  [[nodiscard]] std::size_t pins_of(std::uint64_t number) const {
    const std::string end = "_at_" + std::to_string(number);
    std::size_t count = 0;
    for (const auto& entry : std::filesystem::directory_iterator(pin_directory()))
      count += entry.path().string().ends_with(end);
    return count;
  }
  std::optional<Place> here_;
  std::optional<Place> there_;
};

class Namespaces : public TwoPlaces, public testing::WithParamInterface<AttachMode> {
  [[nodiscard]] AttachMode mode() const override { return GetParam(); }
};
/// Filters of clsact go when an interface is moved.
class NamespacesByTcx : public TwoPlaces {
  [[nodiscard]] AttachMode mode() const override { return AttachMode::kTcx; }
};

INSTANTIATE_TEST_SUITE_P(Each, Namespaces, testing::Values(AttachMode::kTcx, AttachMode::kClsact),
                         [](const auto& row) { return row.param == AttachMode::kTcx ? "tcx" : "clsact"; });

TEST_P(Namespaces, EqualIndicesAreTwoInterfaces) {
  attach_both();
  pass_one_each();
  EXPECT_EQ(only_flow().counters.packets, 2U);
}

TEST_P(Namespaces, DetachIsOfOne) {
  attach_both();
  ASSERT_TRUE(here_->enter());
  const auto detached = datapath().detach(VethPair::kNear, kHere);
  ASSERT_TRUE(detached) << detached.error().message;
  EXPECT_EQ(pins_of(kHere), 0U);
  pass_one_each();
  EXPECT_EQ(only_flow().counters.packets, 1U);
}

TEST_P(Namespaces, NextAgentAdoptsThemInBoth) {
  attach_both();
  pass_one_each();
  close_datapath();
  auto next = BpfDatapath::open(options());
  ASSERT_TRUE(next) << next.error().message;
  pass_one_each();
  const auto flows = next->read_flows();
  ASSERT_TRUE(flows);
  ASSERT_EQ(flows->size(), 1U);
  EXPECT_EQ(flows->front().counters.packets, 4U);
}

TEST_P(Namespaces, CleanupIsOfBoth) {
  attach_both();
  const auto cleaned = BpfDatapath::cleanup(options());
  ASSERT_TRUE(cleaned) << cleaned.error().message;
  EXPECT_FALSE(std::filesystem::exists(pin_directory()));
  pass_one_each();
  EXPECT_TRUE(flows().empty());
  for (const auto* place : {&*here_, &*there_}) {
    ASSERT_TRUE(place->enter());
    EXPECT_FALSE(succeeds(std::string("tc qdisc show dev ") + VethPair::kNear + " | grep -q clsact"));
  }
}

TEST_P(Namespaces, NextAgentLetsGoOfWhatIsNotInItsList) {
  attach_both();
  close_datapath();
  auto next = BpfDatapath::open(options());
  ASSERT_TRUE(next) << next.error().message;
  const auto kept = next->keep_only({{.ifindex = there_->veth().near_ifindex(), .netns = kThere}});
  ASSERT_TRUE(kept) << kept.error().message;
  EXPECT_EQ(pins_of(kHere), 0U);
  pass_one_each();
  const auto flows = next->read_flows();
  ASSERT_TRUE(flows);
  ASSERT_EQ(flows->size(), 1U);
  EXPECT_EQ(flows->front().counters.packets, 1U);
  ASSERT_TRUE(here_->enter());
  EXPECT_FALSE(succeeds(std::string("tc qdisc show dev ") + VethPair::kNear + " | grep -q clsact"));
}

/// A NIC that went back to the host keeps its TCX programs on the way.
TEST_F(NamespacesByTcx, NextAgentLetsGoOfWhatIsInNoneOfItsOwn) {
  attach_both();
  close_datapath();
  const auto only_there = [](const auto& work) { work(kThere); };
  auto next = BpfDatapath::open({.pin_directory = pin_directory(), .in_each_netns = only_there});
  ASSERT_TRUE(next) << next.error().message;
  ASSERT_TRUE(there_->enter());
  ASSERT_TRUE(next->keep_only({{.ifindex = there_->veth().near_ifindex(), .netns = kThere}}));
  EXPECT_EQ(pins_of(kHere), 0U);
  EXPECT_EQ(pins_of(kThere), 2U);
  pass_one_each();
  const auto flows = next->read_flows();
  ASSERT_TRUE(flows);
  ASSERT_EQ(flows->size(), 1U);
  EXPECT_EQ(flows->front().counters.packets, 1U);
}

/// Programs that TCX runs on egress of an interface of the calling thread's namespace.
std::size_t programs_on(std::uint32_t ifindex) {
  std::array<std::uint32_t, 64> ids{};
  auto count = static_cast<std::uint32_t>(ids.size());
  return bpf_prog_query(static_cast<int>(ifindex), kTcxEgress, 0, nullptr, ids.data(), &count) == 0 ? count : 0;
}

/// A NIC goes into a pod with its programs, and keeps its index there; another gets that index here.
TEST_F(NamespacesByTcx, AnotherNicWithTheIndexOfOneThatWentAwayGetsProgramsOfItsOwn) {
  attach_both();
  const std::uint32_t ifindex = here_->veth().near_ifindex();
  ASSERT_EQ(::unshare(CLONE_NEWNET), 0);
  const UniqueFd pod(::open("/proc/thread-self/ns/net", O_RDONLY | O_CLOEXEC));
  ASSERT_TRUE(here_->enter());
  const std::string pod_path = "/proc/" + std::to_string(::getpid()) + "/fd/" + std::to_string(pod.get());
  ASSERT_TRUE(succeeds(std::string("ip link set ") + VethPair::kNear + " netns " + pod_path));
  ASSERT_TRUE(succeeds(std::string("ip link add ") + VethPair::kNear + " index " + std::to_string(ifindex) +
                       " type veth peer name tebpf2"));
  ASSERT_EQ(programs_on(ifindex), 0U);
  ASSERT_TRUE(datapath().attach(VethPair::kNear, AttachMode::kTcx, kHere));
  EXPECT_EQ(programs_on(ifindex), 1U);
  ASSERT_EQ(::setns(pod.get(), CLONE_NEWNET), 0);
  ASSERT_TRUE(
      succeeds(std::string("ip link show ") + VethPair::kNear + " | grep -q '^" + std::to_string(ifindex) + ":'"))
      << "it has another index there: nothing was tested";
  EXPECT_EQ(programs_on(ifindex), 0U) << "the one that went away goes on";
}

}  // namespace
}  // namespace te::agent
