// SPDX-License-Identifier: Apache-2.0
#include "te-controller/engine/engine.h"

#include <gtest/gtest.h>

#include <algorithm>

#include "te-controller/engine/views.h"
#include "tests/support/moments.h"
#include "topology/builder.h"

namespace te {
namespace {

class EngineTest : public ::testing::Test {
 protected:
  static v1::Hello hello(v1::Source::State tc = v1::Source::ON) {
    v1::Hello one;
    one.set_protocol_version(1);
    v1::Source& source = *one.add_sources();
    source.set_name("tc");
    source.set_state(tc);
    return one;
  }
  /// A data flow from h1 to a host below the other leaf, as its sender reports it.
  static v1::AgentMessage report(std::uint32_t port) {
    v1::AgentMessage message;
    v1::FlowUpdate& update = *message.mutable_flows();
    update.set_interval_ms(500);
    update.set_complete(true);
    v1::FlowReport& flow = *update.add_flows();
    *flow.mutable_key() = make_flow_key(kFlow, 3);
    flow.set_direction(v1::EGRESS);
    flow.set_source_port(port);
    flow.set_wire_port(port);
    flow.set_rate_bps(1e6);
    flow.set_payload_bps(1e6);
    return message;
  }
  bool warns(const std::string& text) {
    const v1::Status status = Views(engine_).status(kStart);
    return std::ranges::any_of(status.warnings(), [&](const std::string& one) { return one.starts_with(text); });
  }
  static inline const FlowId kFlow{
      .source = *IpAddress::parse("10.1.1.2"), .destination = *IpAddress::parse("10.2.1.2"), .destination_qpn = 5};

  Engine engine_{build_clos({.leaves = 2, .hosts_per_leaf = 2, .spines = 4}), {}, kStart, kStart / 1000};
};

TEST_F(EngineTest, TakesSourcesThatChangeAfterTheHello) {
  ASSERT_TRUE(engine_.on_hello("h1", hello(), kStart).accepted());
  const auto job = engine_.begin_cycle(kStart);
  ASSERT_TRUE(job);
  engine_.finish_cycle({.job = job, .plan = {}, .computed_ms = 1}, kStart);
  const std::int64_t soon = kStart + engine_.options().planning.interval_ms * kMs;
  EXPECT_FALSE(engine_.begin_cycle(soon));  // nothing new
  v1::AgentMessage message;
  v1::Source& source = *message.mutable_sources()->add_sources();
  source.set_name("probe");
  source.set_state(v1::Source::OFF);
  ASSERT_TRUE(engine_.on_message("h1", message, soon));
  const FleetNode& node = *engine_.fleet().node("h1");
  EXPECT_EQ(node.source("probe"), v1::Source::OFF);
  EXPECT_EQ(node.source("tc"), v1::Source::STATE_UNSPECIFIED);  // the list replaces the one of the Hello
  EXPECT_TRUE(engine_.begin_cycle(soon));
  EXPECT_FALSE(engine_.on_message("h2", message, soon));  // no session
}

TEST_F(EngineTest, LeavesASessionAloneWhenALaterHelloOfItsNodeIsRefused) {
  ASSERT_TRUE(engine_.on_hello("h1", hello(), kStart).accepted());
  ASSERT_TRUE(engine_.on_message("h1", report(50001), kStart));
  ASSERT_FALSE(engine_.take_outgoing(kStart).empty());  // probes are on their way
  v1::Hello other_version = hello(v1::Source::OFF);
  other_version.set_protocol_version(9);
  v1::Hello bad_port = hello(v1::Source::OFF);
  *bad_port.add_steering()->mutable_key() = make_flow_key(kFlow, 3);
  for (const v1::Hello& refused : {other_version, bad_port}) {
    EXPECT_FALSE(engine_.on_hello("h1", refused, kStart + kMs).accepted());
    EXPECT_TRUE(engine_.fleet().node("h1")->connected);
    EXPECT_EQ(engine_.fleet().node("h1")->source("tc"), v1::Source::ON);
    EXPECT_TRUE(engine_.take_outgoing(kStart + kMs).empty());  // not asked anew
    EXPECT_TRUE(engine_.on_message("h1", report(50001), kStart + kMs));
  }
}

TEST_F(EngineTest, WarnsOfProbeAnswersThatFitNoPathAndNamesWhoGaveThem) {
  ASSERT_TRUE(engine_.on_hello("h1", hello(), kStart).accepted());
  ASSERT_TRUE(engine_.on_message("h1", report(50001), kStart));
  const std::vector<Outgoing> out = engine_.take_outgoing(kStart);
  ASSERT_FALSE(out.empty());
  const v1::ProbeRequest& request = out[0].message.probe_request();
  v1::AgentMessage message;
  v1::ProbeResult& result = *message.mutable_probe_result();
  result.set_id(request.id());
  v1::ProbeAnswer& answer = *result.add_answers();
  answer.set_port(request.ports(0));
  answer.set_ttl(request.ttls(0));
  answer.set_responder(IpAddress::parse("192.0.2.1")->to_bytes());
  ASSERT_TRUE(engine_.on_message("h1", message, kStart));
  EXPECT_TRUE(warns("probe answers from 192.0.2.1 fit no path of the topology file: 1 so far"));
}

TEST_F(EngineTest, WarnsOfDataFlowsWhosePathIsUnknown) {
  EXPECT_FALSE(warns("1 data flows take an unknown path"));
  ASSERT_TRUE(engine_.on_hello("h1", hello(), kStart).accepted());
  ASSERT_TRUE(engine_.on_message("h1", report(50001), kStart));
  EXPECT_TRUE(warns("1 data flows take an unknown path and are not counted in the loads"));
}

}  // namespace
}  // namespace te
