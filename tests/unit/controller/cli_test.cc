// SPDX-License-Identifier: Apache-2.0
#include <gtest/gtest.h>

#include "te-controller/cli/api_client.h"
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

}  // namespace
}  // namespace te
