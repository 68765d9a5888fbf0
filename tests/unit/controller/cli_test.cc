// SPDX-License-Identifier: Apache-2.0
#include <gtest/gtest.h>
#include <unistd.h>

#include <array>
#include <csignal>
#include <cstdio>
#include <string>

#include "te-controller/cli/api_client.h"
#include "te-controller/cli/output.h"
#include "te-controller/cli/render.h"
#include "te-controller/cli/table.h"

namespace te {
namespace {

TEST(Table, AlignsColumnsAndLeavesNoTrailingBlanks) {
  Table table({"A", ">NUM", "LAST"});
  table.add({{"x"}, {"5"}, {""}});
  table.add({{"longer"}, {"1234"}, {"end"}});
  table.note("below");
  EXPECT_EQ(table.text(false),
            "A        NUM  LAST\n"
            "x          5\n"
            "longer  1234  end\n"
            "      below\n");
}

TEST(Table, ColoursOnlyWhenAsked) {
  Table table({"A"});
  table.add({{"bad", Tone::kBad}});
  EXPECT_EQ(table.text(false).find('\033'), std::string::npos);
  EXPECT_NE(table.text(true).find("\033[31mbad\033[0m"), std::string::npos);
}

TEST(Render, ShowsEveryWarningOfTheStatus) {
  v1::Status status;
  status.set_mode("act");
  status.add_warnings("first");
  status.add_warnings("second");
  const std::string text = render(status, false);
  EXPECT_NE(text.find("warning   first\n"), std::string::npos);
  EXPECT_NE(text.find("warning   second\n"), std::string::npos);
}

TEST(Render, MarksTheOptionAFlowIsOn) {
  v1::Explanation explanation;
  explanation.mutable_flow()->set_id("0a0b0c0d");
  for (const char* spine : {"spine1", "spine2"}) {
    v1::PathView& path = *explanation.add_options();
    path.add_nodes("h1");
    path.add_nodes(spine);
    path.set_state("reachable");
  }
  explanation.set_current_option(1);
  EXPECT_NE(render(explanation, false).find("*  h1 spine2"), std::string::npos);
}

TEST(Render, SaysSoWhenThereIsNothing) {
  EXPECT_EQ(render(v1::MoveList(), false), "no moves yet\n");
  EXPECT_EQ(render(v1::FlowList(), false), "no RoCE flows seen\n");
  EXPECT_NE(render(v1::PlanView(), false).find("nothing to move\n"), std::string::npos);
}

TEST(ApiClient, SaysWhatToDoWhenNobodyAnswers) {
  const auto reply = call_api("/nonexistent/api.sock", "GET", "/v1/status", std::chrono::milliseconds(1000));
  ASSERT_FALSE(reply);
  EXPECT_NE(reply.error().message.find("/nonexistent/api.sock"), std::string::npos);
  EXPECT_NE(reply.error().message.find("is te-controller running"), std::string::npos);
}

TEST(ApiClient, EncodesQueryValues) { EXPECT_EQ(query_value("fd00::1 &x"), "fd00::1%20%26x"); }

TEST(Output, FailsWhenItCannotBeWritten) {
  std::FILE* full = std::fopen("/dev/full", "w");
  ASSERT_NE(full, nullptr);
  const auto small = write_output(full, "text\n");
  ASSERT_FALSE(small);
  EXPECT_EQ(small.error().message, "the output could not be written: No space left on device");
  EXPECT_FALSE(write_output(full, std::string(1 << 20, 'x')));
  std::fclose(full);
}

TEST(Output, EndsQuietlyWhenItsReaderIsGone) {
  const auto before = std::signal(SIGPIPE, SIG_IGN);
  std::array<int, 2> ends{};
  ASSERT_EQ(::pipe(ends.data()), 0);
  ::close(ends[0]);
  std::FILE* pipe = ::fdopen(ends[1], "w");
  const auto written = write_output(pipe, "text\n");
  std::fclose(pipe);
  std::signal(SIGPIPE, before);
  ASSERT_TRUE(written);
  EXPECT_EQ(*written, Output::kReaderGone);
}

TEST(Output, IsWrittenWhole) {
  std::FILE* file = std::tmpfile();
  ASSERT_NE(file, nullptr);
  const auto written = write_output(file, "text\n");
  ASSERT_TRUE(written);
  EXPECT_EQ(*written, Output::kWritten);
  EXPECT_EQ(std::ftell(file), 5);
  std::fclose(file);
}

}  // namespace
}  // namespace te
