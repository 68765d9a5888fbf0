// SPDX-License-Identifier: Apache-2.0
#include "te-controller/engine/flow_news.h"

#include <gtest/gtest.h>

#include <limits>

#include "te-controller/engine/owned_ends.h"

namespace te {
namespace {

constexpr std::size_t kMost = 10;

FlowId flow_id(const std::string& source, const std::string& destination) {
  return {
      .source = *IpAddress::parse(source), .destination = *IpAddress::parse(destination), .destination_qpn = 0x1234};
}

/// Every field that there is, each with a value of its own.
v1::FlowReport full_report(const FlowId& id) {
  v1::FlowReport report;
  *report.mutable_key() = make_flow_key(id, 3);
  report.set_direction(v1::INGRESS);
  report.set_source_port(50001);
  report.set_wire_port(50002);
  report.set_provenance(v1::PORT_SEEN);
  report.set_flow_label(0x12345);
  report.set_local_qpn(0);
  report.set_remote_qpn(0x777);
  report.set_packets(std::numeric_limits<std::uint64_t>::max());
  report.set_bytes(11);
  report.set_payload_bytes(12);
  report.set_ecn_ce_packets(13);
  report.set_cnp_packets(14);
  report.set_nak_sequence(15);
  report.set_nak_rnr(16);
  report.set_duplicate_packets(17);
  report.set_psn_gaps(18);
  report.set_steered_packets(19);
  report.set_rate_bps(20.5);
  report.set_payload_bps(19.5);
  report.set_ended(true);
  report.set_ack_packets(23);
  report.set_nak_other(24);
  report.set_reordered_packets(25);
  return report;
}

v1::AgentMessage update_of(const std::vector<v1::FlowReport>& reports) {
  v1::AgentMessage message;
  v1::FlowUpdate& update = *message.mutable_flows();
  update.set_interval_ms(500);
  update.set_complete(true);
  update.set_kernel_events_lost(300);
  update.set_kernel_flows_lost(400);
  for (const v1::FlowReport& report : reports) *update.add_flows() = report;
  return message;
}

bool is_plain(const v1::AgentMessage& message) {
  FlowNews news;
  return read_plain_flow_update(message.SerializeAsString(), kMost, news);
}

TEST(FlowNews, IsTheSameReadPlainlyAndDecoded) {
  v1::FlowReport bare;
  *bare.mutable_key() = make_flow_key(flow_id("10.0.0.1", "10.0.0.2"), 2);
  bare.set_direction(v1::EGRESS);
  const auto message = update_of({full_report(flow_id("fd00::1", "fd00::2")), bare});
  FlowNews plain;
  plain.flows.resize(5);  // of an update before
  ASSERT_TRUE(read_plain_flow_update(message.SerializeAsString(), kMost, plain));
  const auto decoded = read_flow_update(message.flows());
  ASSERT_TRUE(decoded);
  EXPECT_EQ(plain.interval_ms, 500U);
  EXPECT_TRUE(plain.complete);
  EXPECT_EQ(plain.kernel_events_lost, 300U);
  EXPECT_EQ(plain.kernel_flows_lost, 400U);
  ASSERT_EQ(plain.flows.size(), 2U);
  for (std::size_t i = 0; i < plain.flows.size(); ++i) {
    EXPECT_EQ(plain.flows[i].end, decoded->flows[i].end);
    EXPECT_EQ(plain.flows[i].record, decoded->flows[i].record);
    EXPECT_EQ(plain.flows[i].ended, decoded->flows[i].ended);
    EXPECT_EQ(plain.flows[i].rate_bps, decoded->flows[i].rate_bps);
    EXPECT_EQ(plain.flows[i].payload_bps, decoded->flows[i].payload_bps);
  }
  EXPECT_EQ(plain.flows[0].record.local_qpn, 0U);
  EXPECT_EQ(plain.flows[0].record.nak_other, 24U);
  EXPECT_FALSE(plain.flows[1].record.local_qpn);
}

TEST(FlowNews, LeavesToTheDecoderWhatAgentsDoNotWrite) {
  const v1::FlowReport good = full_report(flow_id("10.0.0.1", "10.0.0.2"));
  ASSERT_TRUE(is_plain(update_of({good})));
  v1::AgentMessage event;
  event.mutable_event()->set_kind("x");
  EXPECT_FALSE(is_plain(event));
  EXPECT_FALSE(is_plain({}));
  EXPECT_FALSE(is_plain(update_of(std::vector(kMost + 1, good))));
  v1::FlowReport wrong = good;
  wrong.mutable_key()->set_source("xyz");
  EXPECT_FALSE(is_plain(update_of({wrong})));
  wrong = good;
  wrong.mutable_key()->set_destination_qpn(1U << 24U);
  EXPECT_FALSE(is_plain(update_of({wrong})));
  wrong = good;
  wrong.set_direction(v1::DIRECTION_UNSPECIFIED);
  EXPECT_FALSE(is_plain(update_of({wrong})));
  wrong = good;
  wrong.set_wire_port(65536);
  EXPECT_FALSE(is_plain(update_of({wrong})));
  wrong = good;
  wrong.set_rate_bps(std::numeric_limits<double>::quiet_NaN());
  EXPECT_FALSE(is_plain(update_of({wrong})));
}

TEST(FlowNews, LeavesToTheDecoderWhatIsCutShortOrHasMoreInIt) {
  const std::string whole = update_of({full_report(flow_id("10.0.0.1", "10.0.0.2"))}).SerializeAsString();
  FlowNews news;
  for (std::size_t size = 0; size < whole.size(); ++size) {
    EXPECT_FALSE(read_plain_flow_update(whole.substr(0, size), kMost, news)) << size;
  }
  EXPECT_FALSE(read_plain_flow_update(whole + whole, kMost, news));
  EXPECT_FALSE(read_plain_flow_update(whole + std::string("\xf8\x7f\x01", 3), kMost, news));  // an unknown field
}

TEST(RateHistory, KeepsTheNewestInOrder) {
  RateHistory history;
  EXPECT_TRUE(history.empty());
  const auto count = static_cast<std::int64_t>(RateHistory::kMost) + 5;
  for (std::int64_t i = 0; i < count; ++i) history.push_back({.begin_ns = i});
  ASSERT_EQ(history.size(), RateHistory::kMost);
  EXPECT_EQ(history.back().begin_ns, count - 1);
  std::int64_t expected = 5;
  for (const RateSample& sample : history) EXPECT_EQ(sample.begin_ns, expected++);
  EXPECT_EQ(expected, count);
}

TEST(OwnedEnds, AreFoundInAnyOrderAndAfterOthersWent) {
  std::vector<Flow> flows(4);
  std::vector<FlowEndId> ids;
  OwnedEnds ends;
  for (std::size_t i = 0; i < flows.size(); ++i) {
    flows[i].id = flow_id("10.0.0.1", "10.0.1." + std::to_string(i + 1));
    ids.push_back({.id = flows[i].id, .egress = true});
    ends.add(ids.back(), flows[i]);
  }
  for (const std::size_t i : {0U, 1U, 3U, 2U, 2U, 0U}) EXPECT_EQ(ends.find(ids[i]), &flows[i]);
  EXPECT_EQ(ends.find({.id = ids[1].id, .egress = false}), nullptr);
  ends.erase(ids[1]);
  ends.erase(ids[1]);
  EXPECT_EQ(ends.size(), 3U);
  EXPECT_EQ(ends.find(ids[1]), nullptr);
  for (const std::size_t i : {0U, 2U, 3U}) EXPECT_EQ(ends.find(ids[i]), &flows[i]);
  ends.erase(ids[3]);
  ends.erase(ids[0]);
  EXPECT_EQ(ends.find(ids[2]), &flows[2]);
  EXPECT_EQ(ends.size(), 1U);
}

}  // namespace
}  // namespace te
