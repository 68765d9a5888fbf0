// SPDX-License-Identifier: Apache-2.0
// An agent that finds programs of another ABI version takes their steering over, hook by hook, without a gap.
#include <bpf/bpf.h>
#include <bpf/libbpf.h>
#include <gmock/gmock-matchers.h>

#include <algorithm>
#include <atomic>
#include <filesystem>
#include <memory>
#include <thread>

#include "bpf/te_abi.h"
#include "other_abi.skel.h"
#include "tests/bpf/datapath/veth.h"

namespace te::agent {
namespace {

using testing::HasSubstr;

constexpr std::uint32_t kOtherVersion = kTeAbiVersion + 41;

struct OtherKeyV4 {
  std::uint8_t destination[4];
  std::uint8_t source[4];
  std::uint32_t destination_qpn;
  std::uint32_t ifindex;
  std::uint32_t vlan;
};
struct OtherKeyV6 {
  std::uint8_t destination[16];
  std::uint8_t source[16];
  std::uint32_t destination_qpn;
  std::uint32_t ifindex;
  std::uint32_t vlan;
};
struct OtherFlow {
  std::uint64_t packets;
  std::uint32_t something_new[7];
  std::uint16_t wire_port;
  std::uint16_t steer_port;
};

struct DestroyOther {
  void operator()(other_abi* skeleton) const { other_abi::destroy(skeleton); }
};

/// What an agent of another version left: pins, steered flows, a program on one interface.
class Succession : public BpfFixture, public testing::WithParamInterface<AttachMode> {
 protected:
  void SetUp() override {
    BpfFixture::SetUp();
    if (IsSkipped() || HasFatalFailure()) return;
    close_datapath();
    ASSERT_TRUE(BpfDatapath::cleanup({.pin_directory = pin_directory()}));
    if (GetParam() == AttachMode::kTcx && !BpfDatapath::probe_tcx()) GTEST_SKIP() << "no TCX here";
    veth_.emplace();
    ASSERT_TRUE(veth_->ok());
    other_.reset(other_abi::open_and_load());
    ASSERT_TRUE(other_);
    std::filesystem::create_directories(pin_directory());
    const int program = bpf_program__fd(other_->progs.te_other);
    for (const char* name : {"program_egress", "program_ingress", "program_control"}) pin(program, name);
    pin(bpf_map__fd(other_->maps.other_flows_v4), "flows_v4");
    pin(bpf_map__fd(other_->maps.other_flows_v6), "flows_v6");
    pin_version(kOtherVersion);
  }

  void pin(int fd, const std::string& name) {
    ASSERT_EQ(bpf_obj_pin(fd, (pin_directory() + "/" + name).c_str()), 0) << name;
  }
  void pin_version(std::uint32_t version) {
    const UniqueFd abi(bpf_map_create(BPF_MAP_TYPE_ARRAY, "te_abi", 4, 4, 1, nullptr));
    const std::uint32_t only = 0;
    ASSERT_EQ(bpf_map_update_elem(abi.get(), &only, &version, BPF_ANY), 0);
    pin(abi.get(), "abi");
  }
  void attach_other() {
    const int program = bpf_program__fd(other_->progs.te_other);
    if (GetParam() == AttachMode::kTcx) {
      const UniqueFd link(bpf_link_create(program, static_cast<int>(veth_->near_ifindex()), kTcxEgress, nullptr));
      ASSERT_TRUE(link);
      pin(link.get(), "tcx_egress_" + std::to_string(veth_->near_ifindex()));
      return;
    }
    bpf_tc_hook hook{};
    hook.sz = sizeof hook;
    hook.ifindex = static_cast<int>(veth_->near_ifindex());
    hook.attach_point = static_cast<bpf_tc_attach_point>(BPF_TC_INGRESS | BPF_TC_EGRESS);
    ASSERT_EQ(bpf_tc_hook_create(&hook), 0);
    hook.attach_point = BPF_TC_EGRESS;
    bpf_tc_opts options{};
    options.sz = sizeof options;
    options.prog_fd = program;
    options.handle = 0x7e;
    options.priority = 1;
    ASSERT_EQ(bpf_tc_attach(&hook, &options), 0);
  }
  void steer_in_other(const FlowKey& key, std::uint16_t port) {
    OtherFlow flow{};
    flow.wire_port = port;
    flow.steer_port = port;
    const auto fill = [&](auto other, int map) {
      const auto source = key.source.bytes();
      const auto destination = key.destination.bytes();
      std::copy(source.begin(), source.end(), other.source);
      std::copy(destination.begin(), destination.end(), other.destination);
      other.destination_qpn = key.destination_qpn;
      other.ifindex = key.ifindex;
      ASSERT_EQ(bpf_map_update_elem(map, &other, &flow, BPF_ANY), 0);
    };
    if (key.source.is_v6()) return fill(OtherKeyV6{}, bpf_map__fd(other_->maps.other_flows_v6));
    fill(OtherKeyV4{}, bpf_map__fd(other_->maps.other_flows_v4));
  }
  [[nodiscard]] std::uint64_t counted_by_other() const {
    const std::uint32_t only = 0;
    std::uint64_t count = 0;
    bpf_map_lookup_elem(bpf_map__fd(other_->maps.other_packets), &only, &count);
    return count;
  }
  [[nodiscard]] FlowKey sent_key(bool v6 = false) { return key_of(plain_packet(v6), veth_->near_ifindex()); }
  [[nodiscard]] static Bytes frame() { return frame_of(build(plain_packet(false))); }
  [[nodiscard]] static Bytes steered_frame() {
    auto packet = plain_packet(false);
    packet.source_port = kPort;
    return frame_of(build(packet));
  }
  VethPair& veth() { return *veth_; }

 private:
  std::optional<VethPair> veth_;
  std::unique_ptr<other_abi, DestroyOther> other_;
};

INSTANTIATE_TEST_SUITE_P(Each, Succession, testing::Values(AttachMode::kTcx, AttachMode::kClsact),
                         [](const auto& row) { return row.param == AttachMode::kTcx ? "tcx" : "clsact"; });

TEST_P(Succession, TakesTheSteeringOfBothFamilies) {
  steer_in_other(sent_key(false), kPort);
  steer_in_other(sent_key(true), kPort + 1);
  FlowKey not_steered = sent_key();
  not_steered.destination_qpn = 9;
  steer_in_other(not_steered, 0);
  reopen();
  auto all = flows();
  ASSERT_EQ(all.size(), 2U);
  std::ranges::sort(all, {}, &FlowSample::steer_port);
  EXPECT_EQ(all[0].key, sent_key(false));
  EXPECT_EQ(all[0].steer_port, kPort);
  EXPECT_EQ(all[1].key, sent_key(true));
  EXPECT_EQ(all[1].steer_port, kPort + 1);
}

TEST_P(Succession, ReplacesTheProgramOnItsHook) {
  attach_other();
  steer_in_other(sent_key(), kPort);
  ASSERT_EQ(veth().pass(frame()), frame());
  ASSERT_EQ(counted_by_other(), 1U);
  reopen();  // and nothing attached yet by the new agent
  EXPECT_EQ(veth().pass(frame()), steered_frame());
  EXPECT_EQ(counted_by_other(), 1U);
  ASSERT_TRUE(datapath().attach(VethPair::kNear, GetParam()));
  EXPECT_EQ(veth().pass(frame()), steered_frame());
  EXPECT_EQ(only_flow().counters.packets, 2U);
}

TEST_P(Succession, LeavesNoPacketToNeitherAndNoneToBoth) {
  attach_other();
  steer_in_other(sent_key(), kPort);
  std::atomic<bool> stop = false;
  std::atomic<std::uint64_t> sent = 0;
  std::thread sender([&] {
    while (!stop) {
      if (veth().pass(frame())) ++sent;
    }
  });
  while (sent < 100) std::this_thread::yield();
  reopen();
  const std::uint64_t at_swap = sent;
  while (sent < at_swap + 100) std::this_thread::yield();
  stop = true;
  sender.join();
  EXPECT_GT(counted_by_other(), 0U);
  EXPECT_GT(only_flow().counters.packets, 0U);
  EXPECT_EQ(counted_by_other() + only_flow().counters.packets, sent);
}

TEST_P(Succession, IsAdoptedFromThenOn) {
  steer_in_other(sent_key(), kPort);
  reopen();
  ASSERT_TRUE(datapath().attach(VethPair::kNear, GetParam()));
  veth().pass(frame());
  reopen();
  EXPECT_EQ(only_flow().counters.packets, 1U);
  EXPECT_FALSE(std::filesystem::exists(pin_directory() + "/next"));
  ASSERT_TRUE(BpfDatapath::cleanup({.pin_directory = pin_directory()}));
  EXPECT_FALSE(std::filesystem::exists(pin_directory()));
  EXPECT_EQ(veth().pass(frame()), frame());
}

TEST_P(Succession, GoesOnAfterADeathOnTheWay) {
  attach_other();
  steer_in_other(sent_key(), kPort);
  reopen();
  // As if the agent had died before its last pin: the version counts as the old one again.
  close_datapath();
  ASSERT_TRUE(std::filesystem::remove(pin_directory() + "/abi"));
  pin_version(kOtherVersion);
  std::filesystem::create_directories(pin_directory() + "/next");
  const UniqueFd left_behind(bpf_obj_get((pin_directory() + "/program_egress").c_str()));
  pin(left_behind.get(), "next/program_egress");
  reopen();
  EXPECT_EQ(veth().pass(frame()), steered_frame());
  EXPECT_EQ(only_flow().steer_port, kPort);
  EXPECT_FALSE(std::filesystem::exists(pin_directory() + "/next"));
}

TEST_P(Succession, OfAnUnknownLayoutIsRefusedAndLeftAlone) {
  attach_other();
  ASSERT_TRUE(std::filesystem::remove(pin_directory() + "/flows_v4"));
  const UniqueFd unknown(bpf_map_create(BPF_MAP_TYPE_HASH, "unknown", 8, 8, 16, nullptr));
  pin(unknown.get(), "flows_v4");
  const auto opened = BpfDatapath::open({.pin_directory = pin_directory()});
  ASSERT_FALSE(opened);
  EXPECT_THAT(opened.error().message, HasSubstr("ABI version " + std::to_string(kOtherVersion)));
  EXPECT_THAT(opened.error().message, HasSubstr("host-agent cleanup"));
  EXPECT_THAT(opened.error().message, HasSubstr("no BTF"));
  veth().pass(frame());
  EXPECT_EQ(counted_by_other(), 1U);
  ASSERT_TRUE(BpfDatapath::cleanup({.pin_directory = pin_directory()}));
  veth().pass(frame());
  EXPECT_EQ(counted_by_other(), 1U);
  EXPECT_TRUE(BpfDatapath::open({.pin_directory = pin_directory()}));
}

}  // namespace
}  // namespace te::agent
