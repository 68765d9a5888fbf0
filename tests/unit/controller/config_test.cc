// SPDX-License-Identifier: Apache-2.0
#include "te-controller/app/config.h"

#include <gtest/gtest.h>

#include <string>

namespace te {
namespace {

const std::string kLeast =
    "topology: /t.yaml\n"
    "state: /s.db\n"
    "agents: {certificate: c, key: k, ca: a}\n"
    "api: {unix: /api.sock}\n";

std::string error_of(const std::string& text) {
  const auto config = parse_controller_config(text, "c.yaml");
  return config ? "no error" : config.error().message;
}

TEST(ControllerConfig, HasDefaultsForAllThatCanHaveOne) {
  const auto config = parse_controller_config(kLeast, "c.yaml");
  ASSERT_TRUE(config) << config.error().message;
  EXPECT_EQ(config->agents_listen.host, "0.0.0.0");
  EXPECT_EQ(config->agents_listen.port, 7411);
  EXPECT_EQ(config->metrics_listen.host, "127.0.0.1");
  EXPECT_EQ(config->metrics_listen.port, 7412);
  EXPECT_EQ(config->engine.initial_mode, Mode::kObserve);
  EXPECT_EQ(config->engine.planning.cooldown_ms, 3000);
  EXPECT_EQ(config->engine.probing.answers_per_switch_per_s, 100);
  EXPECT_EQ(config->log_level, "info");
}

TEST(ControllerConfig, ReadsEveryKey) {
  const auto config = parse_controller_config(
      "topology: t\nstate: s\nagents: {listen: '[::]:1', certificate: c, key: k, ca: a}\napi: {unix: u}\n"
      "metrics: {listen: '127.0.0.2:2'}\nmode: act\n"
      "planning: {interval_ms: 100, hysteresis: 0.1, cooldown_ms: 5, moves_per_cycle: 7}\n"
      "probing: {answers_per_switch_per_s: 50, attempts: 2, timeout_ms: 300}\nreport_interval_ms: 200\nlog: debug\n",
      "c.yaml");
  ASSERT_TRUE(config) << config.error().message;
  EXPECT_EQ(config->agents_listen.host, "::");
  EXPECT_EQ(config->metrics_listen.port, 2);
  EXPECT_EQ(config->engine.initial_mode, Mode::kAct);
  EXPECT_EQ(config->engine.planning.moves_per_cycle, 7);
  EXPECT_EQ(config->engine.planning.hysteresis, 0.1);
  EXPECT_EQ(config->engine.probing.attempts, 2U);
  EXPECT_EQ(config->engine.report_interval_ms, 200);
  EXPECT_EQ(config->log_level, "debug");
}

TEST(ControllerConfig, NamesFileLineAndKeyOfAMistake) {
  EXPECT_EQ(error_of(kLeast + "planing: {}\n").substr(0, 36), "c.yaml:5: unknown key 'planing'; exp");
  EXPECT_EQ(error_of(kLeast + "mode: go\n"), "c.yaml:5: mode: expected observe or act, found 'go'");
  EXPECT_NE(
      error_of(kLeast + "planning: {interval_ms: 0}\n").find("c.yaml:5: planning.interval_ms: expected a whole number"),
      std::string::npos);
  EXPECT_NE(error_of(kLeast + "metrics: {listen: here}\n").find("c.yaml:5: metrics.listen: expected ADDRESS:PORT"),
            std::string::npos);
  EXPECT_NE(error_of("state: s\n").find("'topology' is missing"), std::string::npos);
  EXPECT_NE(error_of("topology: t\nstate: s\nagents: {key: k, ca: a}\n").find("'certificate' is missing"),
            std::string::npos);
  EXPECT_NE(error_of(kLeast + "log: loud\n").find("expected error, warn, info or debug"), std::string::npos);
  EXPECT_NE(error_of("a: [").find("c.yaml:1: not YAML"), std::string::npos);
}

TEST(ListenAddress, IsAnAddressAndAPort) {
  EXPECT_TRUE(parse_listen_address("10.0.0.1:0"));
  EXPECT_TRUE(parse_listen_address("[fd00::1]:65535"));
  for (const char* wrong :
       {"", "10.0.0.1", "10.0.0.1:", ":80", "10.0.0.1:65536", "10.0.0.1:8x", "::1:80", "[10.0.0.1]:80", "host:80"}) {
    EXPECT_FALSE(parse_listen_address(wrong)) << wrong;
  }
}

const std::string kWithTcp =
    "topology: t\nstate: s\nagents: {certificate: c, key: k, ca: a, crl: l}\n"
    "api: {unix: u, listen: '10.0.0.5:7414', tls: {certificate: tc, key: tk, client_ca: ta, crl: tl},"
    " roles: {alice: operate, bob: view}, tokens_file: f}\n";

TEST(ControllerConfig, ReadsTheApiOverTcpAndEnrolment) {
  const auto config = parse_controller_config(kWithTcp + "enrolment: {authority: /ca, days: 90}\n", "c.yaml");
  ASSERT_TRUE(config) << config.error().message;
  EXPECT_EQ(config->agents_tls.crl, "l");
  ASSERT_TRUE(config->api_listener);
  EXPECT_EQ(config->api_listener->listen.port, 7414);
  EXPECT_EQ(config->api_listener->tls.ca, "ta");
  EXPECT_EQ(config->api_listener->tls.crl, "tl");
  EXPECT_EQ(config->api_listener->roles.at("alice"), Role::kOperate);
  EXPECT_EQ(config->api_listener->tokens_path, "f");
  EXPECT_EQ(config->enrolment_authority, "/ca");
  EXPECT_EQ(config->enrolment_days, 90);
}

TEST(ControllerConfig, NamesWhatIsWrongWithTheApiOverTcp) {
  const std::string begin = "topology: t\nstate: s\nagents: {certificate: c, key: k, ca: a}\n";
  EXPECT_NE(error_of(begin + "api: {unix: u, roles: {}}\n").find("'roles' is of use with 'listen' only"),
            std::string::npos);
  EXPECT_NE(error_of(begin + "api: {unix: u, listen: '1.2.3.4:5'}\n").find("'listen' needs 'tls'"), std::string::npos);
  EXPECT_NE(error_of(begin + "api: {unix: u, listen: '1.2.3.4:5', tls: {certificate: c, key: k, client_ca: a},"
                             " roles: {alice: king}}\n")
                .find("c.yaml:4: api.roles.alice: expected view, operate or isolate, found 'king'"),
            std::string::npos);
  EXPECT_NE(error_of(kLeast + "enrolment: {authority: /ca}\n").find("nodes enrol through 'api.listen'"),
            std::string::npos);
}

}  // namespace
}  // namespace te
