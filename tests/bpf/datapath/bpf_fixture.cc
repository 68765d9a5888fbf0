// SPDX-License-Identifier: Apache-2.0
#include "tests/bpf/datapath/bpf_fixture.h"

#include <bpf/bpf.h>
#include <sched.h>
#include <sys/mount.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cstdlib>
#include <span>

namespace te::agent {
namespace {

constexpr std::size_t kMaxFrameBytes = 4096;
constexpr auto kNext = static_cast<std::uint32_t>(-1);

}  // namespace

Bytes frame_of(const Bytes& ip) {
  Bytes frame{0x02, 0, 0, 0, 0, 2, 0x02, 0, 0, 0, 0, 1};
  const bool v6 = ip[0] >> 4 == 6;
  frame.push_back(v6 ? 0x86 : 0x08);
  frame.push_back(v6 ? 0xDD : 0x00);
  frame.insert(frame.end(), ip.begin(), ip.end());
  return frame;
}

roce::Packet plain_packet(bool v6) {
  static const Bytes kPayload(1024, 0x5A);
  roce::Packet packet;
  packet.source = IpAddress::parse(v6 ? "fd00::1" : "10.0.0.1").value();
  packet.destination = IpAddress::parse(v6 ? "fd00::2" : "10.0.0.2").value();
  packet.source_port = 0xC111;
  packet.traffic_class = 2;  // ECT(0)
  packet.opcode = roce::Opcode::kWriteMiddle;
  packet.destination_qpn = 0x123456;
  packet.psn = 100;
  packet.payload = kPayload;
  return packet;
}

FlowKey key_of(const roce::Packet& packet, std::uint32_t ifindex) {
  return FlowKey{.ifindex = ifindex,
                 .source = packet.source,
                 .destination = packet.destination,
                 .destination_qpn = packet.destination_qpn};
}

void fill_udp_checksum(Bytes& ip) {
  const bool v6 = ip[0] >> 4 == 6;
  const std::size_t udp_at = v6 ? 40 : 20;
  const auto udp = std::span(ip).subspan(udp_at);
  udp[6] = udp[7] = 0;
  std::uint32_t sum = 17 + static_cast<std::uint32_t>(udp.size());
  const auto add = [&sum](std::span<const std::uint8_t> bytes) {
    for (std::size_t i = 0; i < bytes.size(); i += 2) sum += std::uint32_t{bytes[i]} << 8 | bytes[i + 1];
  };
  add(v6 ? std::span(ip).subspan(8, 32) : std::span(ip).subspan(12, 8));
  add(udp);
  while (sum >> 16 != 0) sum = (sum & 0xFFFF) + (sum >> 16);
  const std::uint32_t checksum = sum == 0xFFFF ? 0xFFFF : ~sum & 0xFFFF;
  udp[6] = static_cast<std::uint8_t>(checksum >> 8);
  udp[7] = static_cast<std::uint8_t>(checksum);
}

void BpfFixture::SetUp() {
  if (::geteuid() != 0) GTEST_SKIP() << "needs root to load BPF programs";
  ASSERT_EQ(::unshare(CLONE_NEWNS), 0);
  ASSERT_EQ(::mount("none", "/", nullptr, MS_REC | MS_PRIVATE, nullptr), 0);
  std::string name = testing::TempDir() + "te-bpf-XXXXXX";
  ASSERT_NE(::mkdtemp(name.data()), nullptr);
  bpffs_ = name;
  ASSERT_EQ(::mount("bpf", bpffs_.c_str(), "bpf", 0, nullptr), 0);
  reopen();
}

BpfFixture::~BpfFixture() {
  if (bpffs_.empty()) return;
  ::umount2(bpffs_.c_str(), MNT_DETACH);
  ::rmdir(bpffs_.c_str());
}

void BpfFixture::reopen() {
  datapath_.reset();
  auto opened = BpfDatapath::open({.pin_directory = pin_directory()});
  ASSERT_TRUE(opened) << opened.error().message;
  datapath_.emplace(std::move(*opened));
  programs_[0].reset(bpf_obj_get((pin_directory() + "/program_egress").c_str()));
  programs_[1].reset(bpf_obj_get((pin_directory() + "/program_ingress").c_str()));
  ASSERT_TRUE(programs_[0] && programs_[1]);
}

Bytes BpfFixture::run(FlowDirection direction, const Bytes& frame, const Context& context) {
  __sk_buff skb{};
  skb.mark = context.mark;
  skb.gso_size = context.gso_size;
  Bytes out(kMaxFrameBytes);
  bpf_test_run_opts options{};
  options.sz = sizeof options;
  options.data_in = frame.data();
  options.data_size_in = static_cast<std::uint32_t>(frame.size());
  options.data_out = out.data();
  options.data_size_out = static_cast<std::uint32_t>(out.size());
  options.ctx_in = &skb;
  options.ctx_size_in = sizeof skb;
  const int failed = bpf_prog_test_run_opts(programs_[direction == FlowDirection::kIngress].get(), &options);
  EXPECT_EQ(failed, 0) << "errno " << errno;
  EXPECT_EQ(options.retval, kNext);
  out.resize(options.data_size_out);
  return out;
}

std::vector<FlowSample> BpfFixture::flows() {
  auto samples = datapath_->read_flows();
  EXPECT_TRUE(samples);
  return samples ? *samples : std::vector<FlowSample>{};
}

FlowSample BpfFixture::only_flow() {
  const auto samples = flows();
  EXPECT_EQ(samples.size(), 1U);
  return samples.empty() ? FlowSample{} : samples.front();
}

std::vector<KernelEvent> BpfFixture::events() {
  std::vector<KernelEvent> all;
  datapath_->drain_events([&all](const KernelEvent& event) { all.push_back(event); });
  return all;
}

}  // namespace te::agent
