// SPDX-License-Identifier: Apache-2.0
#include "lab/endpoint/responder.h"

#include <gtest/gtest.h>

#include <array>

namespace te::lab {
namespace {

using roce::Opcode;

constexpr std::array<std::uint8_t, 8> kPayload{};

roce::Packet packet(std::uint32_t psn, Opcode opcode = Opcode::kSendOnly, bool ack_request = false) {
  roce::Packet made;
  made.psn = psn;
  made.opcode = opcode;
  made.ack_request = ack_request;
  made.payload = kPayload;
  return made;
}

TEST(Responder, AcknowledgesAtTheLatestEveryFewPackets) {
  Responder receiver(0, 4);
  for (std::uint32_t psn = 0; psn < 3; ++psn) receiver.on_request(packet(psn));
  EXPECT_TRUE(receiver.take_answers().empty());
  receiver.on_request(packet(3));
  const auto answers = receiver.take_answers();
  ASSERT_EQ(answers.size(), 1U);
  EXPECT_EQ(answers[0].psn, 3U);
  EXPECT_EQ(answers[0].msn, 4U);
}

TEST(Responder, AcknowledgesWhereAskedTo) {
  Responder receiver(7, 100);
  receiver.on_request(packet(7, Opcode::kSendOnly, true));
  EXPECT_EQ(receiver.take_answers().size(), 1U);
}

TEST(Responder, CountsOnlyMessageBytesInOrder) {
  Responder receiver(0, 4);
  receiver.on_request(packet(0));
  receiver.on_request(packet(2));
  receiver.on_request(packet(0));
  EXPECT_EQ(receiver.counters().goodput_bytes, kPayload.size());
  EXPECT_EQ(receiver.counters().out_of_order, 1U);
  EXPECT_EQ(receiver.counters().duplicates, 1U);
}

TEST(Responder, SendsOneNakAGap) {
  Responder receiver(0, 100);
  receiver.on_request(packet(0));
  for (std::uint32_t psn = 2; psn < 6; ++psn) receiver.on_request(packet(psn));
  const auto answers = receiver.take_answers();
  ASSERT_EQ(answers.size(), 1U);
  EXPECT_EQ(answers[0].syndrome, roce::kSyndromeNakSequence);
  EXPECT_EQ(answers[0].psn, 1U);
}

TEST(Responder, SendsANakForTheNextGapOnceTheFirstIsFilled) {
  Responder receiver(0, 100);
  receiver.on_request(packet(1));
  receiver.on_request(packet(0));
  receiver.on_request(packet(2));
  EXPECT_EQ(receiver.counters().naks, 2U);
}

TEST(Responder, AcknowledgesDuplicatesTogetherWithTheNewestPsn) {
  Responder receiver(0, 100);
  for (std::uint32_t psn = 0; psn < 5; ++psn) receiver.on_request(packet(psn));
  receiver.on_request(packet(1));
  receiver.on_request(packet(2));
  const auto answers = receiver.take_answers();
  ASSERT_EQ(answers.size(), 1U);
  EXPECT_EQ(answers[0].syndrome, roce::kSyndromeAck);
  EXPECT_EQ(answers[0].psn, 4U);
}

TEST(Responder, GoesOnAcrossTheWrapOfThePsn) {
  Responder receiver(0xFFFFFF, 100);
  receiver.on_request(packet(0xFFFFFF));
  receiver.on_request(packet(0));
  EXPECT_EQ(receiver.expected_psn(), 1U);
  EXPECT_EQ(receiver.counters().messages_received, 2U);
}

TEST(Responder, CountsAMessageWhenItsLastPacketArrives) {
  Responder receiver(0, 100);
  receiver.on_request(packet(0, Opcode::kWriteFirst));
  receiver.on_request(packet(1, Opcode::kWriteMiddle));
  EXPECT_EQ(receiver.counters().messages_received, 0U);
  receiver.on_request(packet(2, Opcode::kWriteLast, true));
  EXPECT_EQ(receiver.counters().messages_received, 1U);
  EXPECT_EQ(receiver.take_answers().at(0).msn, 1U);
}

TEST(Responder, RefusesAnOpcodeThatDoesNotFollow) {
  Responder receiver(0, 100);
  receiver.on_request(packet(0, Opcode::kWriteMiddle));
  EXPECT_EQ(receiver.counters().invalid, 1U);
  EXPECT_EQ(receiver.expected_psn(), 0U);
  EXPECT_EQ(receiver.take_answers().at(0).syndrome & roce::kSyndromeClassMask, 0x60);
}

}  // namespace
}  // namespace te::lab
