// SPDX-License-Identifier: Apache-2.0
#include <gtest/gtest.h>
#include <unistd.h>

#include <CLI/CLI.hpp>
#include <array>
#include <csignal>
#include <cstdio>
#include <string>

#include "te-controller/cli/api_client.h"
#include "te-controller/cli/call.h"
#include "te-controller/cli/command_tree.h"
#include "te-controller/cli/identity_commands.h"
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
  EXPECT_EQ(render(v1::FlowList(), false), "no RoCE flows\n");
  EXPECT_NE(render(v1::PlanView(), false).find("nothing to move\n"), std::string::npos);
  EXPECT_NE(render(v1::Imbalance(), false).find("no data flow with a known path"), std::string::npos);
}

TEST(Render, TellsLinksThatOperatorsDrained) {
  v1::LinkList list;
  v1::LinkView& well = *list.add_links();
  well.set_state("healthy");
  well.set_drained("drained by alice until it is taken back: new optics");
  v1::LinkView& lossy = *list.add_links();
  lossy.set_state("suspect");
  lossy.set_evidence("1 flow over it lost 1 %");
  lossy.set_drained("drained by bob for 30 min more");
  const std::string text = render(list, false);
  EXPECT_EQ(text.find("healthy"), std::string::npos) << text;
  EXPECT_NE(text.find("suspect, drained"), std::string::npos) << text;
  EXPECT_NE(text.find("drained by alice until it is taken back: new optics\n"), std::string::npos) << text;
  EXPECT_NE(text.find("1 flow over it lost 1 %; drained by bob for 30 min more\n"), std::string::npos) << text;
}

TEST(Render, MarksFiguresOfFlowsThatNobodyReports) {
  v1::FlowList list;
  list.add_flows()->set_rate_bps(5e6);
  EXPECT_EQ(render(list, false).find("was "), std::string::npos);
  list.mutable_flows(0)->set_stale(true);
  EXPECT_NE(render(list, false).find("was 5 Mbit/s"), std::string::npos);
}

TEST(Render, TellsOfEveryMoveWhatWouldHaveRefutedIt) {
  v1::MoveList list;
  v1::MoveView& move = *list.add_moves();
  move.set_refuted_by("a probe that goes otherwise");
  move.set_outcome("flow: 5 Mbit/s before, 9 Mbit/s after");
  const std::string text = render(list, false);
  EXPECT_NE(text.find("wrong if: a probe that goes otherwise\n"), std::string::npos) << text;
  EXPECT_NE(text.find("seen: flow: 5 Mbit/s before"), std::string::npos) << text;
}

TEST(Render, ShowsNotesAboutADrain) {
  v1::OverrideList list;
  list.add_notes("mode is observe");
  EXPECT_NE(render(list, false).find("note: mode is observe\n"), std::string::npos);
}

TEST(RunCall, RepeatsNothingThatChangesSomething) {
  CallOptions options;
  options.api = "unix:/nonexistent/api.sock";
  options.watch_s = 0.1;
  EXPECT_EQ(run_call(options, {.method = "POST", .path = "/v1/pause", .render = nullptr}), kUsage);
}

TEST(Render, TellsWhatAnUnevenTierCosts) {
  v1::Imbalance imbalance;
  imbalance.set_slowest_now_bps(75e6);
  imbalance.set_slowest_ideal_bps(100e6);
  imbalance.set_lost_share(0.25);
  v1::TierView& tier = *imbalance.add_tiers();
  tier.set_tier("leaf -> spine");
  tier.set_links(4);
  tier.mutable_flows()->set_most(3);
  tier.set_fullest("leaf1:spine2 -> spine2:leaf1");
  const std::string text = render(imbalance, false);
  for (const char* part : {"0 to 3", "leaf1:spine2", "75 Mbit/s", "at best 100 Mbit/s: 25% lost"})
    EXPECT_NE(text.find(part), std::string::npos) << part << " in " << text;
}

TEST(Render, NamesSwitchesThatDoNotChooseByThePort) {
  v1::SwitchList list;
  v1::SwitchView& one = *list.add_switches();
  one.set_name("leaf1");
  one.set_ecmp("varies");
  one.set_ecmp_evidence("4 of 5 repeated probes went another way");
  EXPECT_NE(render(list, false).find("varies"), std::string::npos);
  EXPECT_NE(render(list, false).find("4 of 5 repeated"), std::string::npos);
}

TEST(ApiClient, SaysWhatToDoWhenNobodyAnswers) {
  const auto reply =
      call_api({.socket_path = "/nonexistent/api.sock"}, "GET", "/v1/status", std::chrono::milliseconds(1000));
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

TEST(ApiTarget, IsAUnixSocketOrAHostAndPort) {
  EXPECT_EQ(parse_api_target("unix:/run/a.sock")->socket_path, "/run/a.sock");
  EXPECT_EQ(parse_api_target("te.example:7414")->host, "te.example");
  const auto v6 = parse_api_target("[fd00::1]:80");
  ASSERT_TRUE(v6);
  EXPECT_EQ(v6->host, "fd00::1");
  EXPECT_EQ(v6->port, 80);
  for (const char* wrong : {"", "unix:", "host", "host:", "host:0", "host:65536", "host:8x", ":80", "fd00::1:80"})
    EXPECT_FALSE(parse_api_target(wrong)) << wrong;
  EXPECT_FALSE(parse_api_target("unix:/" + std::string(107, 'x')));
}

TEST(ApiClient, SaysWhatAConnectionThatIsRefusedMeans) {
  const ApiTarget api{.host = "127.0.0.1", .port = 1};
  const auto refused = call_api(api, "GET", "/", std::chrono::milliseconds(1000));
  ASSERT_FALSE(refused);
  EXPECT_EQ(refused.error().message,
            "cannot reach te-controller at 127.0.0.1:1: Connection refused; nothing listens there: is te-controller "
            "running, and is this its 'api: listen:' address?");
}

TEST(Lifetime, HasAUnitAndALimit) {
  EXPECT_EQ(parse_lifetime_s("90s").value(), 90);
  EXPECT_EQ(parse_lifetime_s("1h").value(), 3600);
  EXPECT_EQ(parse_lifetime_s("30d").value(), 30 * 86400);
  for (const char* wrong : {"", "h", "1", "1w", "0s", "-1h", "31d", "9999999999999d", "1hh"})
    EXPECT_FALSE(parse_lifetime_s(wrong)) << wrong;
}

CommandInfo sample() {
  CLI::App app("Tries things", "try");
  app.footer("Ends.");
  std::string text;
  double number = 0;
  app.add_option("-o,--output", text)->check(CLI::IsMember({"text", "json"}));
  app.add_option("--watch", number)->expected(0, 1);
  app.add_subcommand("status", "Looks");
  CLI::App* act = app.add_subcommand("act", "Acts");
  act->add_subcommand("on", "Acts on");
  CLI::App* check = app.add_subcommand("check", "Checks");
  check->add_option("FILE", text, "What to check")->required()->type_name("FILE");
  check->add_option("--deep", number, "How deep");
  app.add_subcommand("secret", "Hidden")->group("");
  return describe(app);
}

TEST(CommandTree, NamesTheWordThatIsWrongAndTheNearestRightOne) {
  const CommandInfo root = sample();
  EXPECT_EQ(wrong_word(root, {"stauts"}), "'stauts' is no command of try; did you mean 'status'?");
  EXPECT_EQ(wrong_word(root, {"-o", "json", "act", "onn"}), "'onn' is no command of 'act'; did you mean 'on'?");
  EXPECT_EQ(wrong_word(root, {"--watch", "status", "--outptu", "json"}),
            "'--outptu' is no option of 'status'; did you mean '--output'?");
  EXPECT_EQ(wrong_word(root, {"zzzzzzzz"}), "'zzzzzzzz' is no command of try; the nearest is 'status'");
  for (const std::vector<std::string>& right :
       std::vector<std::vector<std::string>>{{},
                                             {"status"},
                                             {"--output=json", "act", "on"},
                                             {"check", "anything", "--deep", "3"},
                                             {"--watch", "2", "status"}})
    EXPECT_EQ(wrong_word(root, right), "");
}

TEST(CommandTree, CompletesCommandsOptionsAndChoices) {
  const std::string script = bash_completion(sample());
  for (const char* part :
       {"'try') COMPREPLY=($(compgen -W \"status act check ", "'try act') COMPREPLY=($(compgen -W \"on ",
        "-o|--output) COMPREPLY=($(compgen -W \"text json\"", "'try check') COMPREPLY=($(compgen -f",
        "complete -F _try try"})
    EXPECT_NE(script.find(part), std::string::npos) << part << " in " << script;
  EXPECT_EQ(script.find("secret"), std::string::npos);
}

TEST(CommandTree, IsAManualPageToo) {
  const std::string page = manual_page(sample(), "1.2");
  for (const char* part :
       {".TH TRY 1", "roce-te 1.2", ".SS act on", ".SS check \\fIFILE\\fR", "\\fB\\-\\-deep", "Ends."})
    EXPECT_NE(page.find(part), std::string::npos) << part << " in " << page;
  EXPECT_EQ(page.find("secret"), std::string::npos);
}

}  // namespace
}  // namespace te
