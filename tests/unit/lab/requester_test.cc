// SPDX-License-Identifier: Apache-2.0
#include "lab/endpoint/requester.h"

#include <gtest/gtest.h>

#include <vector>

namespace te::lab {
namespace {

using roce::Opcode;

constexpr std::uint32_t kMtu = 4096;
constexpr std::int64_t kTimeoutNs = 250'000'000;

Requester requester(std::uint32_t first_psn, std::uint32_t message_packets = 4, std::uint32_t window = 8) {
  Requester::Options options;
  options.first_psn = first_psn;
  options.window_packets = window;
  return {MessageShape(Verb::kWrite, message_packets * kMtu, kMtu), options};
}

std::vector<Segment> send_all(Requester& sender, std::int64_t now_ns = 0) {
  std::vector<Segment> sent;
  while (sender.can_send()) sent.push_back(sender.send(now_ns));
  return sent;
}

TEST(MessageShape, CutsAMessageIntoFirstMiddleAndLast) {
  const MessageShape shape(Verb::kWrite, 2 * kMtu + 5, kMtu);
  EXPECT_EQ(shape.packets_per_message(), 3U);
  EXPECT_EQ(shape.segment(0).opcode, Opcode::kWriteFirst);
  EXPECT_EQ(shape.segment(1).opcode, Opcode::kWriteMiddle);
  EXPECT_EQ(shape.segment(2).opcode, Opcode::kWriteLast);
  EXPECT_EQ(shape.segment(2).payload_bytes, 5U);
  EXPECT_EQ(shape.segment(3).opcode, Opcode::kWriteFirst);
}

TEST(MessageShape, PutsTheLengthOfTheWholeMessageIntoTheFirstPacket) {
  const MessageShape shape(Verb::kWrite, 3 * kMtu, kMtu);
  ASSERT_TRUE(shape.segment(0).reth.has_value());
  EXPECT_EQ(shape.segment(0).reth->length_bytes, 3 * kMtu);
  EXPECT_FALSE(shape.segment(1).reth.has_value());
}

TEST(MessageShape, SendsASmallMessageAsOnePacket) {
  const MessageShape shape(Verb::kSend, 100, kMtu);
  EXPECT_EQ(shape.segment(7).opcode, Opcode::kSendOnly);
  EXPECT_TRUE(shape.segment(7).ends_message);
}

TEST(Requester, NumbersPacketsFromTheFirstPsnAcrossTheWrap) {
  Requester sender = requester(0xFFFFFE);
  const auto sent = send_all(sender);
  ASSERT_EQ(sent.size(), 8U);
  EXPECT_EQ(sent[1].psn, 0xFFFFFFU);
  EXPECT_EQ(sent[2].psn, 0U);
}

TEST(Requester, StopsAtItsWindowUntilAcknowledged) {
  Requester sender = requester(10);
  send_all(sender);
  EXPECT_FALSE(sender.can_send());
  sender.on_ack(12, 0);
  EXPECT_EQ(send_all(sender).size(), 3U);
}

TEST(Requester, AsksForAnAcknowledgementAtTheEndOfAMessageAndOfItsWindow) {
  Requester sender = requester(0, 4, 6);
  const auto sent = send_all(sender);
  ASSERT_EQ(sent.size(), 6U);
  EXPECT_FALSE(sent[2].ack_request);
  EXPECT_TRUE(sent[3].ack_request);
  EXPECT_TRUE(sent[5].ack_request);
}

TEST(Requester, GoesBackToWhereANakPoints) {
  Requester sender = requester(100);
  send_all(sender);
  sender.on_sequence_nak(103, 0);
  const auto again = send_all(sender);
  ASSERT_FALSE(again.empty());
  EXPECT_EQ(again[0].psn, 103U);
  EXPECT_EQ(sender.counters().retransmitted, 5U);
}

TEST(Requester, GoesBackOnceForTheNaksOfOneReordering) {
  Requester sender = requester(0);
  send_all(sender);
  sender.on_sequence_nak(2, 0);
  sender.send(0);
  sender.on_sequence_nak(3, 0);
  sender.on_sequence_nak(5, 0);
  send_all(sender);
  EXPECT_LE(sender.counters().retransmitted, 8U);
  EXPECT_EQ(sender.counters().naks, 3U);
}

TEST(Requester, SkipsWhatIsAcknowledgedWhileItGoesBack) {
  Requester sender = requester(0);
  send_all(sender);
  sender.on_sequence_nak(1, 0);
  sender.on_ack(6, 0);
  EXPECT_EQ(sender.send(0).psn, 7U);
}

TEST(Requester, SendsTheWindowAgainAfterTheTimeout) {
  Requester sender = requester(0);
  send_all(sender, 0);
  sender.on_time(kTimeoutNs - 1);
  EXPECT_FALSE(sender.can_send());
  sender.on_time(kTimeoutNs);
  EXPECT_EQ(sender.counters().timeouts, 1U);
  EXPECT_EQ(send_all(sender, kTimeoutNs).size(), 8U);
}

TEST(Requester, RestartsItsTimerWithEveryProgress) {
  Requester sender = requester(0);
  send_all(sender, 0);
  sender.on_ack(0, kTimeoutNs - 1);
  sender.on_time(kTimeoutNs + 1);
  EXPECT_EQ(sender.counters().timeouts, 0U);
}

TEST(Requester, GivesUpAfterItsRetriesAndCountsTheMessagesAsLost) {
  Requester sender = requester(0);
  send_all(sender, 0);
  for (int turn = 1; turn <= 8; ++turn) sender.on_time(turn * kTimeoutNs);
  EXPECT_TRUE(sender.is_broken());
  EXPECT_FALSE(sender.can_send());
  EXPECT_EQ(sender.counters().messages_lost, 2U);
}

TEST(Requester, FinishesTheMessagesItHasBegunWhenStopped) {
  Requester sender = requester(0, 4, 6);
  send_all(sender);
  sender.stop();
  EXPECT_FALSE(sender.is_drained());
  sender.on_ack(5, 0);
  EXPECT_EQ(send_all(sender).back().psn, 7U);
  sender.on_ack(7, 0);
  EXPECT_TRUE(sender.is_drained());
  EXPECT_FALSE(sender.can_send());
  EXPECT_EQ(sender.counters().messages_completed, 2U);
}

TEST(Requester, IgnoresAnswersToWhatIsNotOutstanding) {
  Requester sender = requester(50);
  send_all(sender);
  sender.on_ack(49, 0);
  sender.on_ack(58, 0);
  sender.on_sequence_nak(90, 0);
  EXPECT_FALSE(sender.can_send());
  EXPECT_EQ(sender.counters().naks, 0U);
}

}  // namespace
}  // namespace te::lab
