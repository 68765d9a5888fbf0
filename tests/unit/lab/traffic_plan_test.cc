// SPDX-License-Identifier: Apache-2.0
#include "lab/traffic_plan.h"

#include <gtest/gtest.h>
#include <unistd.h>

#include <algorithm>
#include <filesystem>
#include <set>
#include <tuple>

#include "common/os/file.h"

namespace te::lab {
namespace {

Fabric fabric_of(int hosts, std::uint32_t seed = 1) {
  Spec spec;
  spec.id = "x";
  spec.hosts = hosts;
  spec.seed = seed;
  return lay_out(*checked(spec));
}

TEST(Patterns, RingGoesRound) {
  const auto made = connections_of("ring", 3, 1);
  ASSERT_TRUE(made.ok());
  EXPECT_EQ(made->size(), 3U);
  EXPECT_EQ(made->back(), std::make_pair(std::size_t{2}, std::size_t{0}));
}

TEST(Patterns, NobodyTalksToItself) {
  for (const std::string& name : pattern_names()) {
    for (std::uint32_t seed = 1; seed < 20; ++seed) {
      const auto made = connections_of(name, 7, seed);
      ASSERT_TRUE(made.ok());
      for (const auto& [source, destination] : *made) EXPECT_NE(source, destination) << name;
    }
  }
}

TEST(Patterns, APermutationReachesEveryoneOnce) {
  const auto made = connections_of("permutation", 16, 5);
  std::set<std::size_t> reached;
  for (const auto& connection : *made) reached.insert(connection.second);
  EXPECT_EQ(reached.size(), 16U);
}

TEST(Patterns, UnknownOnesAndLoneHostsAreErrors) {
  EXPECT_FALSE(connections_of("star", 4, 1).ok());
  EXPECT_FALSE(connections_of("ring", 1, 1).ok());
}

TEST(Flows, TakeTheirNumbersFromTheSeed) {
  const TrafficOptions options;
  const auto one = plan_flows(fabric_of(8), options);
  const auto again = plan_flows(fabric_of(8), options);
  const auto other = plan_flows(fabric_of(8, 2), options);
  EXPECT_EQ(one->at(0).source_qpn, again->at(0).source_qpn);
  EXPECT_NE(one->at(0).source_qpn, other->at(0).source_qpn);
}

TEST(Flows, QpnsAreUniqueOnEachHost) {
  TrafficOptions options;
  options.pattern = "all-to-all";
  options.qps = 8;
  const Fabric fabric = fabric_of(8);
  const auto flows = plan_flows(fabric, options);
  for (const EndpointPlan& endpoint : plan_endpoints(fabric, options, *flows, "/nowhere")) {
    std::set<std::uint32_t> qpns;
    for (const QpPlan& qp : endpoint.qps) qpns.insert(qp.qpn);
    EXPECT_EQ(qpns.size(), 2U * 7U * 8U);
  }
}

TEST(Flows, BothEndsAgreeOnQpnsAndPsns) {
  const TrafficOptions options;
  const Fabric fabric = fabric_of(2);
  const auto flows = plan_flows(fabric, options);
  const auto endpoints = plan_endpoints(fabric, options, *flows, "/nowhere");
  for (const QpPlan& qp : endpoints[0].qps) {
    const auto& theirs = endpoints[1].qps;
    const auto other =
        std::find_if(theirs.begin(), theirs.end(), [&](const QpPlan& each) { return each.qpn == qp.remote_qpn; });
    ASSERT_NE(other, theirs.end());
    EXPECT_EQ(other->remote_qpn, qp.qpn);
    EXPECT_EQ(other->send_psn, qp.receive_psn);
    EXPECT_EQ(other->receive_psn, qp.send_psn);
    EXPECT_NE(other->sends, qp.sends);
  }
}

TEST(Flows, JoinTheSameNicOfBothHosts) {
  Spec spec;
  spec.id = "x";
  spec.hosts = 4;
  spec.nics = 2;
  const Fabric fabric = lay_out(*checked(spec));
  TrafficOptions options;
  options.qps = 3;
  const auto flows = plan_flows(fabric, options);
  ASSERT_EQ(flows->size(), 4U * 2U * 3U);
  const auto endpoints = plan_endpoints(fabric, options, *flows, "/nowhere");
  ASSERT_EQ(endpoints[0].nics.size(), 2U);
  for (const FlowPlan& flow : *flows) {
    for (const auto& [host, peer, qpn] : {std::tuple{flow.source, flow.destination, flow.source_qpn},
                                          std::tuple{flow.destination, flow.source, flow.destination_qpn}}) {
      const auto& qps = endpoints[host].qps;
      const auto qp = std::ranges::find(qps, qpn, &QpPlan::qpn);
      ASSERT_NE(qp, qps.end());
      EXPECT_EQ(qp->nic, flow.nic);
      EXPECT_EQ(qp->remote, host_address(fabric, peer, flow.nic));
    }
  }
}

TEST(Flows, LabelsReachTheNicThatTheyName) {
  Spec spec;
  spec.id = "x";
  spec.hosts = 2;
  spec.nics = 2;
  const Fabric fabric = lay_out(*checked(spec));
  auto flows = plan_flows(fabric, TrafficOptions{});
  const auto root =
      YamlReader::parse("flows: [{source: h1, destination: h2, nic: 1, qp: 1, flow_label: 77}]", "labels");
  ASSERT_TRUE(set_flow_labels(fabric, *root, *flows).ok());
  for (const FlowPlan& flow : *flows) {
    EXPECT_EQ(flow.flow_label, flow.source == 0 && flow.nic == 1 && flow.qp == 1 ? 77U : 0U);
  }
  const auto beyond = YamlReader::parse("flows: [{source: h1, destination: h2, nic: 2, flow_label: 77}]", "labels");
  EXPECT_FALSE(set_flow_labels(fabric, *beyond, *flows).ok());
}

TEST(Flows, LabelsOfAFileChangeTheFlowsItNames) {
  const Fabric fabric = fabric_of(4);
  auto flows = plan_flows(fabric, TrafficOptions{});
  const auto root = YamlReader::parse("flows: [{source: h1, destination: h2, qp: 1, flow_label: 77}]", "labels");
  ASSERT_TRUE(set_flow_labels(fabric, *root, *flows).ok());
  EXPECT_EQ(flows->at(0).flow_label, 0U);
  EXPECT_EQ(flows->at(1).flow_label, 77U);
}

TEST(Flows, LabelsForAFlowThatIsNotThereAreAnError) {
  const Fabric fabric = fabric_of(4);
  auto flows = plan_flows(fabric, TrafficOptions{});
  const auto root = YamlReader::parse("flows: [{source: h1, destination: h3, flow_label: 77}]", "labels");
  EXPECT_FALSE(set_flow_labels(fabric, *root, *flows).ok());
}

TEST(EndpointPlan, IsReadBackAsItWasWritten) {
  const TrafficOptions options;
  Spec spec;
  spec.id = "x";
  spec.hosts = 2;
  spec.nics = 2;
  const Fabric fabric = lay_out(*checked(spec));
  const auto plans = plan_endpoints(fabric, options, *plan_flows(fabric, options), "/nowhere");
  const std::string path = testing::TempDir() + "te-unit-lab-plan." + std::to_string(::getpid());
  ASSERT_TRUE(replace_file(path, plan_json(plans[1])).ok());
  const auto read = read_plan(path);
  std::filesystem::remove(path);
  ASSERT_TRUE(read.ok()) << read.error().message;
  EXPECT_EQ(plan_json(*read), plan_json(plans[1]));
}

}  // namespace
}  // namespace te::lab
