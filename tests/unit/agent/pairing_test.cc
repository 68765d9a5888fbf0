// SPDX-License-Identifier: Apache-2.0
#include "host-agent/core/pairing.h"

#include <gtest/gtest.h>

#include <algorithm>

#include "tests/unit/agent/samples.h"

namespace te::agent {
namespace {

using test::egress;
using test::ingress;

PairedFlow paired(const std::vector<FlowRecord>& flows, const std::vector<QueuePair>& qps, const FlowRecord& flow) {
  for (const PairedFlow& result : pair_flows(flows, qps)) {
    if (result.key == flow.key) return result;
  }
  ADD_FAILURE() << "the flow is not in the result";
  return {};
}

const FlowRecord kToA = egress("10.0.0.1", "10.0.0.2", 17);
const FlowRecord kToB = egress("10.0.0.1", "10.0.0.3", 17);
const FlowRecord kFromA = ingress("10.0.0.2", "10.0.0.1", 100);
const FlowRecord kFromB = ingress("10.0.0.3", "10.0.0.1", 101);
const std::vector<QueuePair> kTwoPeersOneQpn = {{"rxe0", 100, 17}, {"rxe0", 101, 17}};

TEST(Pairing, IngressFlowCarriesTheLocalQpn) {
  const PairedFlow result = paired({kFromA}, {{"rxe0", 100, 17}}, kFromA);
  EXPECT_EQ(result.local_qpn, 100U);
  EXPECT_EQ(result.remote_qpn, 17U);
}

TEST(Pairing, WithoutATableOnlyWhatThePacketSaysIsKnown) {
  const PairedFlow in = paired({kFromA, kToA}, {}, kFromA);
  EXPECT_EQ(in.local_qpn, 100U);
  EXPECT_EQ(in.remote_qpn, std::nullopt);
  const PairedFlow out = paired({kFromA, kToA}, {}, kToA);
  EXPECT_EQ(out.local_qpn, std::nullopt);
  EXPECT_EQ(out.remote_qpn, 17U);
}

TEST(Pairing, IngressTellsWhichPeerAnEqualRemoteQpnBelongsTo) {
  const std::vector flows = {kToA, kToB, kFromA, kFromB};
  EXPECT_EQ(paired(flows, kTwoPeersOneQpn, kToA).local_qpn, 100U);
  EXPECT_EQ(paired(flows, kTwoPeersOneQpn, kToB).local_qpn, 101U);
}

TEST(Pairing, OnePeerSeenLeavesOneCandidateForTheOther) {
  const std::vector flows = {kToA, kToB, kFromA};
  EXPECT_EQ(paired(flows, kTwoPeersOneQpn, kToA).local_qpn, 100U);
  EXPECT_EQ(paired(flows, kTwoPeersOneQpn, kToB).local_qpn, 101U);
}

TEST(Pairing, SingleEgressFlowPairsWithTheOnlyCandidate) {
  EXPECT_EQ(paired({kToA}, {{"rxe0", 100, 17}}, kToA).local_qpn, 100U);
}

TEST(Pairing, TwoEgressFlowsWithoutIngressStayUnknown) {
  const std::vector flows = {kToA, kToB};
  EXPECT_EQ(paired(flows, kTwoPeersOneQpn, kToA).local_qpn, std::nullopt);
  EXPECT_EQ(paired(flows, kTwoPeersOneQpn, kToB).local_qpn, std::nullopt);
}

TEST(Pairing, OneEgressFlowWithTwoCandidatesStaysUnknown) {
  EXPECT_EQ(paired({kToA}, kTwoPeersOneQpn, kToA).local_qpn, std::nullopt);
}

TEST(Pairing, CandidateThatTalksToAnotherPeerIsNone) {
  EXPECT_EQ(paired({kToB, kFromA}, {{"rxe0", 100, 17}}, kToB).local_qpn, std::nullopt);
}

TEST(Pairing, EqualLocalQpnOnTwoDevicesStaysUnknownUntilEgressTells) {
  const std::vector<QueuePair> qps = {{"rxe0", 100, 17}, {"rxe1", 100, 18}};
  EXPECT_EQ(paired({kFromA}, qps, kFromA).remote_qpn, std::nullopt);
  EXPECT_EQ(paired({kFromA, kToA}, qps, kFromA).remote_qpn, 17U);
}

TEST(Pairing, InterfaceSeparatesEqualAddresses) {
  FlowRecord elsewhere = kFromA;
  elsewhere.key.ifindex = 9;
  EXPECT_EQ(paired({kToA, elsewhere}, {{"rxe0", 100, 17}}, kToA).local_qpn, std::nullopt);
}

TEST(Pairing, ContradictingTableStaysUnknown) {
  const FlowRecord also_from_a = ingress("10.0.0.2", "10.0.0.1", 101);
  EXPECT_EQ(paired({kToA, kFromA, also_from_a}, kTwoPeersOneQpn, kToA).local_qpn, std::nullopt);
}

TEST(Provenance, PortThatFollowsFromTheQpns) {
  FlowRecord flow = kToA;
  flow.local_qpn = 0x11;
  flow.remote_qpn = 0x12;
  flow.source_port = 0xC132;  // shared vector of the kernel's rule
  EXPECT_EQ(provenance_of(flow), v1::PORT_FROM_QPNS);
}

TEST(Provenance, PortThatFollowsFromTheFlowLabel) {
  FlowRecord flow = egress("fd00::1", "fd00::2", 17);
  flow.flow_label = 0x12345;
  flow.source_port = 0xE341;
  EXPECT_EQ(provenance_of(flow), v1::PORT_FROM_FLOW_LABEL);
}

TEST(Provenance, OtherPortWasSeen) {
  FlowRecord flow = kToA;
  flow.source_port = 50000;
  EXPECT_EQ(provenance_of(flow), v1::PORT_SEEN);
}

TEST(Provenance, SteeredPortWasSetByUs) {
  FlowRecord flow = kToA;
  flow.source_port = 50000;
  flow.steer_port = 50001;
  EXPECT_EQ(provenance_of(flow), v1::PORT_SET_BY_US);
}

TEST(Provenance, NoPortIsUnknown) { EXPECT_EQ(provenance_of(kToA), v1::PORT_UNKNOWN); }

}  // namespace
}  // namespace te::agent
