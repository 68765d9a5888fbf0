// SPDX-License-Identifier: Apache-2.0
// The datapath on real interfaces: pinned, attached by TCX and clsact, adopted, cleaned up.
#include <bpf/bpf.h>
#include <bpf/libbpf.h>
#include <gmock/gmock-matchers.h>
#include <unistd.h>

#include <array>
#include <cstdio>
#include <filesystem>
#include <fstream>
#include <memory>

#include "bpf/te_abi.h"
#include "foreign.skel.h"
#include "tests/bpf/datapath/veth.h"

namespace te::agent {
namespace {

using roce::Packet;
using testing::HasSubstr;

struct DestroyForeign {
  void operator()(foreign* skeleton) const { foreign::destroy(skeleton); }
};

/// A program of somebody else, attached behind ours.
class ForeignProgram {
 public:
  ForeignProgram() : skeleton_(foreign::open_and_load()) {}

  bool attach_tcx(std::uint32_t ifindex, bool egress) {
    link_ = UniqueFd(bpf_link_create(program(), static_cast<int>(ifindex), egress ? kTcxEgress : kTcxIngress, nullptr));
    return static_cast<bool>(link_);
  }
  bool attach_clsact(std::uint32_t ifindex, bool egress) {
    bpf_tc_hook hook{};
    hook.sz = sizeof hook;
    hook.ifindex = static_cast<int>(ifindex);
    hook.attach_point = egress ? BPF_TC_EGRESS : BPF_TC_INGRESS;
    bpf_tc_opts options{};
    options.sz = sizeof options;
    options.prog_fd = program();
    options.priority = 2;
    return bpf_tc_attach(&hook, &options) == 0;
  }
  [[nodiscard]] std::uint64_t packets() const {
    const std::uint32_t only = 0;
    std::uint64_t count = 0;
    bpf_map_lookup_elem(bpf_map__fd(skeleton_->maps.foreign_packets), &only, &count);
    return count;
  }

 private:
  [[nodiscard]] int program() const { return bpf_program__fd(skeleton_->progs.foreign); }

  std::unique_ptr<foreign, DestroyForeign> skeleton_;
  UniqueFd link_;
};

class Attach : public BpfFixture, public testing::WithParamInterface<AttachMode> {
 protected:
  void SetUp() override {
    BpfFixture::SetUp();
    if (IsSkipped() || HasFatalFailure()) return;
    if (GetParam() == AttachMode::kTcx) {
      if (const auto known = BpfDatapath::probe_tcx(); !known) GTEST_SKIP() << known.error().message;
    }
    veth_.emplace();
    ASSERT_TRUE(veth_->ok());
  }
  void attach(const char* interface) {
    const auto mode = datapath().attach(interface, GetParam());
    ASSERT_TRUE(mode) << mode.error().message;
    ASSERT_EQ(*mode, GetParam());
  }
  VethPair& veth() { return *veth_; }
  [[nodiscard]] static Bytes frame() { return frame_of(build(plain_packet(false))); }
  [[nodiscard]] FlowKey sent_key() { return key_of(plain_packet(false), veth_->near_ifindex()); }
  [[nodiscard]] FlowKey received_key() { return key_of(plain_packet(false), veth_->far_ifindex()); }
  FlowSample flow_of(const FlowKey& key) {
    for (const FlowSample& flow : flows()) {
      if (flow.key == key) return flow;
    }
    ADD_FAILURE() << "flow not seen";
    return {};
  }

 private:
  std::optional<VethPair> veth_;
};

INSTANTIATE_TEST_SUITE_P(Each, Attach, testing::Values(AttachMode::kTcx, AttachMode::kClsact),
                         [](const auto& row) { return row.param == AttachMode::kTcx ? "tcx" : "clsact"; });

TEST_P(Attach, SeesBothDirections) {
  attach(VethPair::kNear);
  attach(VethPair::kFar);
  EXPECT_EQ(veth().pass(frame()), frame());
  EXPECT_EQ(flow_of(sent_key()).direction, FlowDirection::kEgress);
  EXPECT_EQ(flow_of(received_key()).direction, FlowDirection::kIngress);
}

TEST_P(Attach, SeesTaggedFramesWhereTheKernelTakesTheOuterTagOff) {
  attach(VethPair::kNear);
  attach(VethPair::kFar);
  for (const Bytes& tags : {Bytes{0x81, 0, 0, 5}, Bytes{0x88, 0xA8, 0, 5, 0x81, 0, 0, 6}}) {
    Bytes tagged = frame();
    tagged.insert(tagged.begin() + 12, tags.begin(), tags.end());
    ASSERT_TRUE(veth().pass(tagged));
  }
  EXPECT_EQ(flow_of(sent_key()).counters.packets, 2U);
  EXPECT_EQ(flow_of(received_key()).counters.packets, 2U);
}

TEST_P(Attach, TwiceCountsOnce) {
  attach(VethPair::kNear);
  attach(VethPair::kNear);
  veth().pass(frame());
  EXPECT_EQ(flow_of(sent_key()).counters.packets, 1U);
}

TEST_P(Attach, ChangesTheMode) {
  attach(VethPair::kNear);
  const AttachMode other = GetParam() == AttachMode::kTcx ? AttachMode::kClsact : AttachMode::kTcx;
  if (other == AttachMode::kTcx && !BpfDatapath::probe_tcx()) GTEST_SKIP() << "no TCX here";
  ASSERT_TRUE(datapath().attach(VethPair::kNear, other));
  veth().pass(frame());
  EXPECT_EQ(flow_of(sent_key()).counters.packets, 1U) << "attached in both modes";
}

TEST_P(Attach, SteersWhatReachesTheOtherEnd) {
  attach(VethPair::kNear);
  attach(VethPair::kFar);
  ASSERT_TRUE(datapath().set_steering(sent_key(), kPort));
  Packet expected = plain_packet(false);
  expected.source_port = kPort;
  EXPECT_EQ(veth().pass(frame()), frame_of(build(expected)));
  EXPECT_EQ(flow_of(received_key()).source_port, kPort);
}

TEST_P(Attach, LeavesEveryPacketToAForeignProgramBehind) {
  constexpr std::uint64_t kFrames = 20;
  attach(VethPair::kNear);
  attach(VethPair::kFar);
  ForeignProgram behind_egress;
  ForeignProgram behind_ingress;
  if (GetParam() == AttachMode::kTcx) {
    ASSERT_TRUE(behind_egress.attach_tcx(veth().near_ifindex(), true));
    ASSERT_TRUE(behind_ingress.attach_tcx(veth().far_ifindex(), false));
  } else {
    ASSERT_TRUE(behind_egress.attach_clsact(veth().near_ifindex(), true));
    ASSERT_TRUE(behind_ingress.attach_clsact(veth().far_ifindex(), false));
  }
  ASSERT_TRUE(datapath().set_steering(sent_key(), kPort));
  for (std::uint64_t i = 0; i < kFrames / 2; ++i) {
    ASSERT_TRUE(veth().pass(frame()));
    ASSERT_TRUE(veth().pass(Bytes(60, 0x22))) << "not RoCE";
  }
  EXPECT_EQ(flow_of(sent_key()).counters.steered_packets, kFrames / 2);
  EXPECT_EQ(behind_egress.packets(), kFrames);
  EXPECT_EQ(behind_ingress.packets(), kFrames);
}

TEST_P(Attach, GoesOnWithoutAnAgentAndIsAdoptedByTheNext) {
  attach(VethPair::kNear);
  ASSERT_TRUE(datapath().set_steering(sent_key(), kPort));
  veth().pass(frame());
  close_datapath();
  Packet expected = plain_packet(false);
  expected.source_port = kPort;
  EXPECT_EQ(veth().pass(frame()), frame_of(build(expected))) << "steering without an agent";
  reopen();
  attach(VethPair::kNear);
  veth().pass(frame());
  const FlowSample flow = flow_of(sent_key());
  EXPECT_EQ(flow.counters.packets, 3U);
  EXPECT_EQ(flow.steer_port, kPort);
}

TEST_P(Attach, DetachStopsItAtOnce) {
  attach(VethPair::kNear);
  ASSERT_TRUE(datapath().detach(VethPair::kNear));
  EXPECT_EQ(veth().pass(frame()), frame());
  EXPECT_TRUE(flows().empty());
  ASSERT_TRUE(datapath().detach(VethPair::kNear)) << "twice";
  attach(VethPair::kNear);
  veth().pass(frame());
  EXPECT_EQ(flow_of(sent_key()).counters.packets, 1U);
}

TEST_P(Attach, OutlivesItsInterface) {
  attach(VethPair::kNear);
  ASSERT_TRUE(succeeds(std::string("ip link del ") + VethPair::kNear));
  EXPECT_FALSE(datapath().attach(VethPair::kNear, GetParam()).ok());
  ASSERT_TRUE(succeeds(std::string("ip link add ") + VethPair::kNear + " index " +
                       std::to_string(veth().near_ifindex()) + " type veth peer name " + VethPair::kFar));
  attach(VethPair::kNear);
  EXPECT_TRUE(BpfDatapath::cleanup({.pin_directory = pin_directory()}));
}

TEST_P(Attach, CleanupLeavesNothingOfOursAndAllOfOthers) {
  attach(VethPair::kNear);
  attach(VethPair::kFar);
  ForeignProgram foreign_program;
  ASSERT_TRUE(GetParam() == AttachMode::kTcx ? foreign_program.attach_tcx(veth().near_ifindex(), true)
                                             : foreign_program.attach_clsact(veth().near_ifindex(), true));
  ASSERT_TRUE(datapath().set_steering(sent_key(), kPort));
  const auto cleaned = BpfDatapath::cleanup({.pin_directory = pin_directory()});
  ASSERT_TRUE(cleaned) << cleaned.error().message;
  EXPECT_FALSE(std::filesystem::exists(pin_directory()));
  EXPECT_EQ(veth().pass(frame()), frame()) << "still steered";
  EXPECT_EQ(foreign_program.packets(), 1U);
  EXPECT_TRUE(BpfDatapath::cleanup({.pin_directory = pin_directory()})) << "twice";
}

TEST_P(Attach, CleanupRemovesTheQdiscThatItMade) {
  const std::string shows_clsact = std::string("tc qdisc show dev ") + VethPair::kNear + " | grep -q clsact";
  attach(VethPair::kNear);
  EXPECT_EQ(succeeds(shows_clsact), GetParam() == AttachMode::kClsact);
  ASSERT_TRUE(BpfDatapath::cleanup({.pin_directory = pin_directory()}));
  EXPECT_FALSE(succeeds(shows_clsact));
}

TEST_P(Attach, CleanupLeavesTheQdiscOfSomebodyElse) {
  const std::string shows_clsact = std::string("tc qdisc show dev ") + VethPair::kNear + " | grep -q clsact";
  ASSERT_TRUE(succeeds(std::string("tc qdisc add dev ") + VethPair::kNear + " clsact"));
  attach(VethPair::kNear);
  ASSERT_TRUE(BpfDatapath::cleanup({.pin_directory = pin_directory()}));
  EXPECT_TRUE(succeeds(shows_clsact));
}

TEST_P(Attach, TakesAPagedFrameWholeOrNotAtAll) {
  attach(VethPair::kNear);
  ASSERT_TRUE(datapath().set_steering(sent_key(), kPort));
  static const Bytes kLong(8000, 0x77);
  Packet packet = plain_packet(false);
  packet.payload = kLong;
  const auto out = veth().pass_paged(frame_of(build(packet)), 78);
  packet.source_port = kPort;
  EXPECT_EQ(out, frame_of(build(packet)));
}

TEST_P(Attach, ReadsHeadersThatLieInPageFragments) {
  attach(VethPair::kNear);
  static const Bytes kLong(8000, 0x77);
  Packet packet = plain_packet(false);
  packet.payload = kLong;
  EXPECT_EQ(veth().pass_paged(frame_of(build(packet)), 16), frame_of(build(packet)));
  EXPECT_EQ(flow_of(sent_key()).counters.payload_bytes, kLong.size());
}

TEST_P(Attach, SendsAPacketTooLongToRepairUntouched) {
  attach(VethPair::kNear);
  ASSERT_TRUE(datapath().set_steering(sent_key(), kPort));
  static const Bytes kTooLong(9216, 0x77);
  Packet packet = plain_packet(false);
  packet.payload = kTooLong;
  EXPECT_EQ(veth().pass(frame_of(build(packet))), frame_of(build(packet)));
  EXPECT_EQ(datapath().losses().value().unsteered_packets, 1U);
  EXPECT_EQ(flow_of(sent_key()).counters.steered_packets, 0U);
  EXPECT_EQ(flow_of(sent_key()).wire_port, packet.source_port);
}

class Open : public BpfFixture {};

/// What the kernel says a map takes ("memlock" of its descriptor); 0 when it does not say.
std::uint64_t locked_bytes_of(int map_fd) {
  std::ifstream text("/proc/self/fdinfo/" + std::to_string(map_fd));
  for (std::string word; text >> word;) {
    if (std::uint64_t bytes = 0; word == "memlock:" && text >> bytes) return bytes;
  }
  return 0;
}

TEST_F(Open, KeepsHostsApart) {
  auto other = BpfDatapath::open({.pin_directory = pin_directory() + "2"});
  ASSERT_TRUE(other) << other.error().message;
  send(plain_packet(false));
  EXPECT_EQ(flows().size(), 1U);
  EXPECT_TRUE(other->read_flows().value().empty());
}

TEST_F(Open, TakesAtMost32MegabytesOfKernelMemory) {
  constexpr std::uint64_t kLimitBytes = 32ULL << 20;
  const UniqueFd program(bpf_obj_get((pin_directory() + "/program_egress").c_str()));
  std::array<std::uint32_t, 16> map_ids{};
  bpf_prog_info info{};
  info.nr_map_ids = map_ids.size();
  info.map_ids = reinterpret_cast<std::uintptr_t>(map_ids.data());
  std::uint32_t size = sizeof info;
  ASSERT_EQ(bpf_obj_get_info_by_fd(program.get(), &info, &size), 0);
  ASSERT_GE(info.nr_map_ids, 5U);
  std::uint64_t sum = 0;
  for (std::uint32_t i = 0; i < info.nr_map_ids; ++i) {
    const UniqueFd map(bpf_map_get_fd_by_id(map_ids[i]));
    sum += locked_bytes_of(map.get());  // Linux 6.1 says 0 for the ring buffer
  }
  EXPECT_GT(sum, 2ULL * kTeMaxFlows * sizeof(TeFlow));
  EXPECT_LT(sum + kTeEventRingBytes, kLimitBytes);  // preallocated: the same with 16,384 flows of each family
}

/// A power of two that is at least `number`.
std::uint64_t rounded_up(std::uint64_t number) {
  std::uint64_t power = 1;
  while (power < number) power *= 2;
  return power;
}

/// What a preallocated hash takes with so many CPUs: its entries and one spare for each CPU, each with the head of
/// struct htab_elem; buckets; and for each CPU the list of free entries and the locks (Linux kernel/bpf/hashtab.c).
std::uint64_t hash_bytes(const bpf_map_info& map, std::uint64_t cpus) {
  constexpr std::uint64_t kEntryHead = 48;
  constexpr std::uint64_t kBucket = 16;
  constexpr std::uint64_t kForEachCpu = 64 + 8 * sizeof(std::uint32_t) + sizeof(void*);
  const auto padded = [](std::uint64_t bytes) { return (bytes + 7) / 8 * 8; };
  const std::uint64_t entry = kEntryHead + padded(map.key_size) + padded(map.value_size);
  return (map.max_entries + cpus) * entry + rounded_up(map.max_entries) * kBucket + cpus * kForEachCpu;
}

TEST_F(Open, WouldTakeAtMost32MegabytesOn256CpusWith10000Flows) {
  constexpr std::uint64_t kCpus = 256;
  static_assert(kTeMaxFlows >= 10'000);
  std::uint64_t sum = 0;
  for (const char* name : {"flows_v4", "flows_v6", "events", "losses"}) {
    const UniqueFd map(bpf_obj_get((pin_directory() + "/" + name).c_str()));
    bpf_map_info info{};
    std::uint32_t size = sizeof info;
    ASSERT_EQ(bpf_obj_get_info_by_fd(map.get(), &info, &size), 0) << name;
    // A per-CPU map would have to be counted here for each CPU.
    ASSERT_TRUE(info.type == BPF_MAP_TYPE_HASH || info.type == BPF_MAP_TYPE_RINGBUF || info.type == BPF_MAP_TYPE_ARRAY);
    const bool hash = info.type == BPF_MAP_TYPE_HASH;
    const std::uint64_t bytes = hash ? hash_bytes(info, kCpus) : std::uint64_t{info.max_entries} + 3 * 4096;
    if (hash) {
      const auto here = static_cast<std::uint64_t>(::sysconf(_SC_NPROCESSORS_CONF));
      const auto said = static_cast<double>(locked_bytes_of(map.get()));
      EXPECT_NEAR(static_cast<double>(hash_bytes(info, here)), said, said / 10) << "the formula does not fit " << name;
    }
    sum += bytes;
  }
  sum += (kTeIcrcRows + 1) * sizeof(TeIcrcRow);
  std::printf("kernel memory of the maps on %llu CPUs: %.1f MB\n", static_cast<unsigned long long>(kCpus),
              static_cast<double>(sum) / (1 << 20));
  EXPECT_LE(sum, 32ULL << 20);
}

TEST_F(Open, SaysThatThereIsNoBpffs) {
  const auto opened = BpfDatapath::open({.pin_directory = "/proc/self/roce-te"});
  ASSERT_FALSE(opened);
  EXPECT_THAT(opened.error().message, HasSubstr("mount -t bpf"));
}

TEST_F(Open, StartsAnewAfterAnAgentThatDiedWhilePinning) {
  close_datapath();
  ASSERT_TRUE(std::filesystem::remove(pin_directory() + "/abi"));
  reopen();
  send(plain_packet(false));
  EXPECT_EQ(flows().size(), 1U);
}

TEST_F(Open, RefusesInterfacesThatItCannotParse) {
  const VethPair veth;
  const auto missing = datapath().attach("nosuch0", AttachMode::kAuto);
  ASSERT_FALSE(missing);
  EXPECT_THAT(missing.error().message, HasSubstr("nosuch0"));
  ASSERT_TRUE(succeeds("ip tuntap add tebpftun mode tun"));
  const auto no_ethernet = datapath().attach("tebpftun", AttachMode::kAuto);
  ASSERT_FALSE(no_ethernet);
  EXPECT_THAT(no_ethernet.error().message, HasSubstr("Ethernet"));
}

TEST_F(Open, CleanupOfSomebodyElsesDirectoryRemovesNothing) {
  const std::string directory = pin_directory() + "-foreign";
  std::filesystem::create_directories(directory + "/theirs");
  EXPECT_TRUE(BpfDatapath::cleanup({.pin_directory = directory}));
  EXPECT_TRUE(std::filesystem::exists(directory + "/theirs"));
}

}  // namespace
}  // namespace te::agent
