// SPDX-License-Identifier: Apache-2.0
#include "lab/spec.h"

#include <gtest/gtest.h>

namespace te::lab {
namespace {

Result<Spec> read(const std::string& text) {
  auto root = YamlReader::parse(text, "spec.yaml");
  if (!root) return std::move(root).error();
  return read_spec(*root, Spec{});
}

TEST(Spec, TakesWhatTheTextSaysAndDefaultsForTheRest) {
  const auto spec = read("hosts: 16\nrate: 100mbit\nfamily: 6\n");
  ASSERT_TRUE(spec.ok()) << spec.error().message;
  EXPECT_EQ(spec->hosts, 16);
  EXPECT_EQ(spec->rate_bps, 100e6);
  EXPECT_EQ(spec->family, IpAddress::Family::kV6);
  EXPECT_EQ(spec->spines, 4);
}

TEST(Spec, RefusesAnUnknownKeyByName) {
  const auto spec = read("hosts: 4\nspinez: 2\n");
  ASSERT_FALSE(spec.ok());
  EXPECT_NE(spec.error().message.find("spinez"), std::string::npos);
}

TEST(Spec, RefusesValuesOutOfRangeAndSaysTheRange) {
  const auto spec = read("leaves: 0\n");
  ASSERT_FALSE(spec.ok());
  EXPECT_NE(spec.error().message.find("1 to 99"), std::string::npos);
}

TEST(Spec, RefusesASeedOfZero) { EXPECT_FALSE(read("seed: 0\n").ok()); }

TEST(Spec, RefusesAFamilyThatIsNotFourOrSix) { EXPECT_FALSE(read("family: 5\n").ok()); }

TEST(Spec, TakesOneVlanOrTwo) {
  using Vlans = std::vector<std::uint16_t>;
  EXPECT_EQ(read("vlan: 100\n")->vlans, Vlans({100}));
  EXPECT_EQ(read("vlan: \"100,4094\"\n")->vlans, Vlans({100, 4094}));
  EXPECT_EQ(format_vlans({100, 4094}), "100,4094");
  EXPECT_TRUE(parse_vlans("")->empty());
  for (const char* bad : {"0", "4095", "65637", "-1", "100,", ",100", "1,2,3", "x", "100 200", "100,x"}) {
    const auto vlans = parse_vlans(bad);
    ASSERT_FALSE(vlans.ok()) << bad;
    EXPECT_NE(vlans.error().message.find(bad), std::string::npos);
  }
}

TEST(Spec, MarksFromTwentyFourFullPacketsOn) {
  const auto spec = read("mtu: 4500\n");
  ASSERT_TRUE(spec.ok());
  EXPECT_EQ(spec->mark_bytes, 24U * 4154U);
}

TEST(LabId, IsLowerCaseLettersAndDigits) {
  EXPECT_TRUE(is_lab_id("lab1"));
  for (const char* wrong : {"", "a-b", "Lab", "../x", "abcdefghijklmnopq"}) EXPECT_FALSE(is_lab_id(wrong)) << wrong;
}

TEST(PathMtu, IsTheLargestThatTheInterfaceCarries) {
  // As measured on rdma_rxe: netdev >= 1104 gives 1024, >= 2128 gives 2048, >= 4176 gives 4096.
  EXPECT_EQ(path_mtu_of(1500), 1024);
  EXPECT_EQ(path_mtu_of(2127), 1024);
  EXPECT_EQ(path_mtu_of(2128), 2048);
  EXPECT_EQ(path_mtu_of(4175), 2048);
  EXPECT_EQ(path_mtu_of(4176), 4096);
  EXPECT_EQ(path_mtu_of(9000), 4096);
}

TEST(Spec, WantsALeafForEachNicOfAHost) {
  Spec spec;
  spec.nics = 3;
  spec.leaves = 4;
  const auto refused = checked(spec);
  ASSERT_FALSE(refused.ok());
  EXPECT_NE(refused.error().message.find("multiple of 3"), std::string::npos);
  spec.leaves = 6;
  EXPECT_TRUE(checked(spec).ok());
  spec.hosts = 501;  // two groups: 251 on a leaf
  EXPECT_FALSE(checked(spec).ok());
  spec.nics = 0;
  EXPECT_FALSE(checked(spec).ok());
}

}  // namespace
}  // namespace te::lab
