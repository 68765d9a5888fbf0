// SPDX-License-Identifier: Apache-2.0
#include "lab/cable_end.h"

#include <gtest/gtest.h>

namespace te::lab {
namespace {

Fabric small_fabric() {
  Spec spec;
  spec.id = "x";
  spec.hosts = 3;
  spec.leaves = 2;
  spec.spines = 1;
  return lay_out(*checked(spec));
}

TEST(CableEnd, IsFoundByEitherEndOfItsCable) {
  const Fabric fabric = small_fabric();
  const auto leaf = find_end(fabric, "leaf2:spine1");
  const auto spine = find_end(fabric, "spine1:leaf2");
  ASSERT_TRUE(leaf.ok() && spine.ok());
  EXPECT_EQ(*spine, other_end(*leaf));
  EXPECT_EQ(*leaf, other_end(*spine));
}

TEST(CableEnd, EveryNameLeadsBackToItself) {
  const Fabric fabric = small_fabric();
  for (std::size_t link = 0; link < fabric.links.size(); ++link) {
    for (const bool is_a : {true, false}) {
      const CableEnd end{link, is_a};
      const auto found = find_end(fabric, end_name(fabric, end));
      ASSERT_TRUE(found.ok());
      EXPECT_EQ(*found, end);
    }
  }
}

TEST(CableEnd, NamesTheNodesThereAreWhenANodeIsUnknown) {
  const auto found = find_end(small_fabric(), "leaf3:spine1");
  ASSERT_FALSE(found.ok());
  EXPECT_EQ(found.error().message, "there is no node 'leaf3'; there are h1 to h3, leaf1, leaf2, spine1");
}

TEST(CableEnd, NamesTheNodesPortsWhenAPortIsUnknown) {
  for (const char* name : {"leaf1:spine2", "leaf1:", "leaf1:mgmt0"}) {
    const auto found = find_end(small_fabric(), name);
    ASSERT_FALSE(found.ok());
    EXPECT_NE(found.error().message.find("it has h1, h3, spine1"), std::string::npos) << found.error().message;
  }
}

TEST(CableEnd, AsksForNodeAndPort) {
  for (const char* name : {"", "leaf1", "leaf1 spine1"}) {
    const auto found = find_end(small_fabric(), name);
    ASSERT_FALSE(found.ok());
    EXPECT_NE(found.error().message.find("NODE:PORT"), std::string::npos);
  }
}

TEST(Switch, IsFoundByNameAndNeverAHost) {
  const Fabric fabric = small_fabric();
  EXPECT_EQ(fabric.nodes[*find_switch(fabric, "spine1")].name, "spine1");
  for (const char* name : {"h1", "leaf3", ""}) {
    const auto found = find_switch(fabric, name);
    ASSERT_FALSE(found.ok());
    EXPECT_NE(found.error().message.find("there are leaf1, leaf2, spine1"), std::string::npos);
  }
}

}  // namespace
}  // namespace te::lab
