// SPDX-License-Identifier: Apache-2.0
#include "host-agent/core/qp_table.h"

#include <gtest/gtest.h>

#include <algorithm>

namespace te::agent {
namespace {

std::string entry(const std::string& replaced, const std::string& by) {
  std::string text =
      R"([{"ifindex":0,"ifname":"rxe0","port":1,"lqpn":17,"rqpn":18,"type":"RC","state":"RTS","rq-psn":0,)"
      R"("sq-psn":0,"path-mig-state":"MIGRATED","pid":1,"comm":"x"}])";
  if (!replaced.empty()) text.replace(text.find(replaced), replaced.size(), by);
  return text;
}

std::string error_of(const std::string& json) {
  const auto table = parse_qp_table(json, "qp.json");
  return table ? "no error" : table.error().message;
}

TEST(QpTable, ReadsAConnectedQueuePair) {
  const auto table = parse_qp_table(entry("", ""), "qp.json");
  ASSERT_TRUE(table) << table.error().message;
  EXPECT_EQ(*table, (std::vector<QueuePair>{{"rxe0", 17, 18}}));
}

TEST(QpTable, EmptyListIsAnEmptyTable) {
  const auto table = parse_qp_table("[]", "qp.json");
  ASSERT_TRUE(table);
  EXPECT_TRUE(table->empty());
}

TEST(QpTable, ParserErrorIsOneLineOfAscii) {
  for (const char* json : {"[{", "[\n{\n\"a\"\n\n1}]", "\xff\xfe", "[1,\n\xc3]\n", ""}) {
    const std::string error = error_of(json);
    EXPECT_TRUE(error.starts_with("qp.json: expected the JSON list of 'rdma -j resource show qp': ")) << error;
    EXPECT_TRUE(std::all_of(error.begin(), error.end(), [](char c) { return c >= ' ' && c <= '~'; })) << error;
  }
}

TEST(QpTable, LeavesOutOtherTypes) { EXPECT_TRUE(parse_qp_table(entry("\"RC\"", "\"UD\""), "q")->empty()); }

TEST(QpTable, LeavesOutQueuePairsWithoutRemoteQpn) {
  EXPECT_TRUE(parse_qp_table(entry("\"rqpn\":18,", ""), "q")->empty());
}

TEST(QpTable, LeavesOutQueuePairsInError) { EXPECT_TRUE(parse_qp_table(entry("\"RTS\"", "\"ERR\""), "q")->empty()); }

TEST(QpTable, ErrorNamesSourceAndEntry) {
  EXPECT_EQ(error_of(entry("\"lqpn\":17", "\"lqpn\":\"x\"")), "qp.json: entry 0: expected a number 'lqpn'");
}

TEST(QpTable, MissingLocalQpnIsAnError) {
  EXPECT_EQ(error_of(entry("\"lqpn\":17,", "")), "qp.json: entry 0: expected a number 'lqpn'");
}

TEST(QpTable, QpnOfMoreThan24BitsIsAnError) {
  EXPECT_EQ(error_of(entry("\"rqpn\":18", "\"rqpn\":16777216")),
            "qp.json: entry 0: expected 'rqpn' from 0 to 16777215");
}

TEST(QpTable, FractionalAndNegativeQpnsAreErrors) {
  EXPECT_NE(error_of(entry("\"lqpn\":17", "\"lqpn\":1.5")), "no error");
  EXPECT_NE(error_of(entry("\"lqpn\":17", "\"lqpn\":-1")), "no error");
}

TEST(QpTable, HalfWrittenFileIsAnError) {
  const std::string whole = entry("", "");
  for (std::size_t length = 0; length < whole.size(); ++length) {
    EXPECT_FALSE(parse_qp_table(whole.substr(0, length), "q").ok()) << length;
  }
}

TEST(QpTable, OtherJsonIsAnError) {
  EXPECT_NE(error_of("{}"), "no error");
  EXPECT_NE(error_of("[1]"), "no error");
  EXPECT_NE(error_of("null"), "no error");
}

TEST(QpTable, DeepNestingIsAnErrorNotACrash) { EXPECT_NE(error_of(std::string(100000, '[')), "no error"); }

}  // namespace
}  // namespace te::agent
