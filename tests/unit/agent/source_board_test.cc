// SPDX-License-Identifier: Apache-2.0
#include "host-agent/core/source_board.h"

#include <gtest/gtest.h>

namespace te::agent {
namespace {

TEST(SourceBoard, OnlyAChangeIsNews) {
  SourceBoard board;
  EXPECT_FALSE(board.set("qp", v1::Source::OFF, "no file"));
  EXPECT_FALSE(board.set("qp", v1::Source::OFF, "no file"));
  EXPECT_TRUE(board.set("qp", v1::Source::ON, "file"));
  EXPECT_EQ(board.all().size(), 1U);
}

TEST(SourceBoard, GenerationMovesWithEachChangeOnly) {
  SourceBoard board;
  board.set("qp", v1::Source::OFF, "no file");
  const std::uint64_t first = board.generation();
  board.set("qp", v1::Source::OFF, "no file");
  EXPECT_EQ(board.generation(), first);
  board.set("qp", v1::Source::OFF, "bad file");
  const std::uint64_t other_reason = board.generation();
  EXPECT_NE(other_reason, first);
  board.set("qp", v1::Source::ON, "bad file");
  const std::uint64_t other_state = board.generation();
  EXPECT_NE(other_state, other_reason);
  board.set("tc", v1::Source::STATE_UNSPECIFIED, "");
  EXPECT_NE(board.generation(), other_state);
}

TEST(SourceBoard, UnknownSourceIsNotOn) {
  SourceBoard board;
  board.set("tc", v1::Source::ON, "");
  EXPECT_TRUE(board.is_on("tc"));
  EXPECT_FALSE(board.is_on("qp"));
}

TEST(SourceBoard, TcxWithoutPermissionIsOffRatherThanNotSupported) {
  const auto tcx = [](AttachWish wish, const Result<void>& permitted, const Result<void>& supported) {
    SourceBoard board;
    set_tcx(board, wish, permitted, supported);
    return state_name(board.all().at(0).state()) + ": " + board.all().at(0).reason();
  };
  const Error no_permission{"no permission: run as root"};
  const Error no_tcx{"this kernel has no TCX"};
  EXPECT_EQ(tcx(AttachWish::kAuto, no_permission, no_tcx), "off: no permission: run as root");
  EXPECT_EQ(tcx(AttachWish::kAuto, {}, no_tcx), "not supported: this kernel has no TCX");
  EXPECT_EQ(tcx(AttachWish::kClsact, {}, {}), "off: attach: clsact");
  EXPECT_EQ(tcx(AttachWish::kAuto, {}, {}), "on: ");
}

TEST(SourceBoard, TableHasOneAlignedLineASource) {
  SourceBoard board;
  board.set("tc", v1::Source::ON, "");
  board.set("qp", v1::Source::NOT_SUPPORTED, "no RDMA");
  EXPECT_EQ(sources_as_table(board.all()),
            "SOURCE  STATE          REASON\n"
            "tc      on             -\n"
            "qp      not supported  no RDMA\n");
}

TEST(SourceBoard, JsonIsAListOfObjects) {
  SourceBoard board;
  board.set("tc", v1::Source::ON, "");
  board.set("qp", v1::Source::OFF, "say \"no\"");
  EXPECT_EQ(sources_as_json(board.all()),
            R"([{"name":"tc","state":"ON","reason":""},{"name":"qp","state":"OFF","reason":"say \"no\""}])");
}

}  // namespace
}  // namespace te::agent
