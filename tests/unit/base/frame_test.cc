// SPDX-License-Identifier: Apache-2.0
#include "common/wire/frame.h"

#include <gtest/gtest.h>

#include <string>
#include <vector>

#include "te/v1/agent.pb.h"

namespace te {
namespace {

v1::AgentMessage hello(const std::string& node) {
  v1::AgentMessage message;
  message.mutable_hello()->set_node(node);
  return message;
}

std::string node_of(const std::string& body) {
  v1::AgentMessage message;
  EXPECT_TRUE(message.ParseFromString(body));
  return message.hello().node();
}

/// All bodies that are complete.
std::vector<std::string> drain(FrameDecoder& decoder) {
  std::vector<std::string> bodies;
  while (true) {
    auto body = decoder.next();
    EXPECT_TRUE(body.ok());
    if (!body.ok() || !*body) return bodies;
    bodies.push_back(**body);
  }
}

TEST(Frame, BeginsWithTheLengthInNetworkOrder) {
  const std::string frame = encode_frame(hello("h1"));
  const std::string body = hello("h1").SerializeAsString();
  ASSERT_EQ(frame.size(), 4 + body.size());
  EXPECT_EQ(frame.substr(0, 4), std::string("\0\0\0", 3) + static_cast<char>(body.size()));
  EXPECT_EQ(frame.substr(4), body);
}

TEST(FrameDecoder, GivesBackWhatWasEncoded) {
  FrameDecoder decoder;
  decoder.feed(encode_frame(hello("h1")));
  const auto bodies = drain(decoder);
  ASSERT_EQ(bodies.size(), 1U);
  EXPECT_EQ(node_of(bodies[0]), "h1");
}

TEST(FrameDecoder, WaitsForTheWholeHeader) {
  FrameDecoder decoder;
  decoder.feed(encode_frame(hello("h1")).substr(0, 3));
  EXPECT_TRUE(drain(decoder).empty());
}

TEST(FrameDecoder, WaitsForTheWholeBody) {
  const std::string frame = encode_frame(hello("h1"));
  FrameDecoder decoder;
  decoder.feed(frame.substr(0, frame.size() - 1));
  EXPECT_TRUE(drain(decoder).empty());
  decoder.feed(frame.substr(frame.size() - 1));
  EXPECT_EQ(drain(decoder).size(), 1U);
}

TEST(FrameDecoder, CutsFramesThatComeTogether) {
  FrameDecoder decoder;
  decoder.feed(encode_frame(hello("h1")) + encode_frame(hello("h2")) + encode_frame(hello("h3")));
  const auto bodies = drain(decoder);
  ASSERT_EQ(bodies.size(), 3U);
  EXPECT_EQ(node_of(bodies[2]), "h3");
}

TEST(FrameDecoder, TakesBytesOneByOne) {
  std::string stream;
  for (int i = 0; i < 20; ++i) stream += encode_frame(hello("h" + std::to_string(i)));
  FrameDecoder decoder;
  std::size_t found = 0;
  for (const char byte : stream) {
    decoder.feed({&byte, 1});
    for (const std::string& body : drain(decoder)) EXPECT_EQ(node_of(body), "h" + std::to_string(found++));
  }
  EXPECT_EQ(found, 20U);
}

TEST(FrameDecoder, KnowsEmptyBodies) {
  FrameDecoder decoder;
  decoder.feed(encode_frame(v1::AgentMessage()));
  EXPECT_EQ(drain(decoder), std::vector<std::string>{""});
}

TEST(FrameDecoder, TakesAFrameOfTheLargestSize) {
  FrameDecoder decoder;
  decoder.feed(std::string("\x00\x80\x00\x00", 4) + std::string(kMaxFrameBytes, 'x'));
  const auto bodies = drain(decoder);
  ASSERT_EQ(bodies.size(), 1U);
  EXPECT_EQ(bodies[0].size(), kMaxFrameBytes);
}

TEST(FrameDecoder, RefusesALargerFrameBeforeItArrives) {
  FrameDecoder decoder;
  decoder.feed(std::string("\x00\x80\x00\x01", 4));
  const auto body = decoder.next();
  ASSERT_FALSE(body.ok());
  EXPECT_EQ(body.error().message, "peer announced a frame of 8388609 bytes; the limit is 8388608");
}

TEST(FrameDecoder, StaysUnusableAfterAnOversizedFrame) {
  FrameDecoder decoder;
  decoder.feed(std::string("\xff\xff\xff\xff", 4));
  EXPECT_FALSE(decoder.next().ok());
  decoder.feed(encode_frame(hello("h1")));
  EXPECT_FALSE(decoder.next().ok());
}

}  // namespace
}  // namespace te
