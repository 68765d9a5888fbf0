// SPDX-License-Identifier: Apache-2.0
#include "te-controller/app/preflight.h"

#include <gtest/gtest.h>

#include <filesystem>
#include <string>

#include "common/os/file.h"
#include "tests/support/certificates.h"

namespace te {
namespace {

class PreflightTest : public ::testing::Test {
 protected:
  PreflightTest() {
    config_.agents_tls = authority_.issue("te-controller");
    config_.state_path = authority_.folder() + "/state.db";
    config_.api_socket_path = authority_.folder() + "/api.sock";
  }
  std::string problem() {
    const auto good = check_surroundings(config_);
    return good ? "" : good.error().message;
  }

  test::CertificateAuthority authority_;
  ControllerConfig config_;
};

TEST_F(PreflightTest, FindsNoFaultAndLeavesNothingBehind) {
  EXPECT_EQ(problem(), "");
  EXPECT_FALSE(std::filesystem::exists(config_.state_path));
  EXPECT_FALSE(std::filesystem::exists(config_.api_socket_path));
}

TEST_F(PreflightTest, RefusesACertificateOfAnotherName) {
  config_.agents_tls = authority_.issue("h1");
  EXPECT_NE(problem().find(config_.agents_tls.certificate + ": its common name is 'h1'"), std::string::npos);
}

TEST_F(PreflightTest, RefusesDirectoriesThatAreMissingOrOfAnotherKind) {
  const std::string folder = authority_.folder();
  config_.state_path = folder + "/nowhere/state.db";
  EXPECT_EQ(problem(),
            "state " + config_.state_path + ": its directory " + folder + "/nowhere: No such file or directory");
  config_.state_path = config_.agents_tls.key + "/state.db";
  EXPECT_NE(problem().find(" is no directory"), std::string::npos);
  config_.state_path = folder + "/state.db";
  config_.api_socket_path = folder + "/nowhere/api.sock";
  EXPECT_EQ(problem(), "api.unix " + config_.api_socket_path + ": its directory " + folder +
                           "/nowhere: No such file or directory");
}

TEST_F(PreflightTest, RefusesADirectoryThatItMayNotWrite) {
  config_.state_path = "/proc/sys/state.db";  // not even root may make files there
  EXPECT_NE(problem().find("its directory /proc/sys cannot be written: "), std::string::npos);
}

TEST_F(PreflightTest, RefusesASocketPathThatDoesNotFit) {
  const std::string start = authority_.folder() + "/";
  config_.api_socket_path = start + std::string(107 - start.size(), 'x');
  EXPECT_EQ(problem(), "");
  config_.api_socket_path += "x";
  EXPECT_NE(problem().find("at most 107 bytes"), std::string::npos);
}

TEST_F(PreflightTest, TellsEveryFaultOfAConfigurationAtOnce) {
  const std::string path = authority_.folder() + "/c.yaml";
  const TlsFiles& tls = config_.agents_tls;
  ASSERT_TRUE(replace_file(path, "topology: /nonexistent/t.yaml\nstate: /nonexistent/s.db\nagents: {certificate: " +
                                     tls.certificate + ", key: " + tls.key + ", ca: " + tls.ca +
                                     ", crl: /nonexistent/crl.pem}\napi: {unix: " + config_.api_socket_path + "}\n"));
  const ConfigReport report = check_config(path);
  ASSERT_EQ(report.faults.size(), 3U);
  EXPECT_EQ(report.faults[0], "topology: read /nonexistent/t.yaml: No such file or directory");
  EXPECT_EQ(report.faults[1], "agents: read /nonexistent/crl.pem: No such file or directory");
  EXPECT_NE(report.faults[2].find("state /nonexistent/s.db: its directory"), std::string::npos);
  ASSERT_TRUE(replace_file(path, "mode: dance\n"));
  EXPECT_EQ(check_config(path).faults, std::vector<std::string>{path + ":1: 'topology' is missing"});
}

}  // namespace
}  // namespace te
