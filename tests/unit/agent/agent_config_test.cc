// SPDX-License-Identifier: Apache-2.0
#include "host-agent/core/agent_config.h"

#include <gtest/gtest.h>

namespace te::agent {
namespace {

const std::string kLeast =
    "node: h1\n"
    "controllers: [\"10.255.0.1:7411\"]\n"
    "certificate: c.pem\n"
    "key: k.pem\n"
    "ca: ca.pem\n"
    "interfaces: [eth0]\n";

std::string error_of(const std::string& yaml) {
  const auto config = parse_agent_config(yaml, "agent.yaml");
  return config ? "no error" : config.error().message;
}

TEST(AgentConfig, LeastConfigurationTakesDefaults) {
  const auto config = parse_agent_config(kLeast, "agent.yaml");
  ASSERT_TRUE(config) << config.error().message;
  EXPECT_EQ(config->node, "h1");
  EXPECT_EQ(config->controllers, (std::vector<Endpoint>{{"10.255.0.1", 7411}}));
  EXPECT_EQ(config->qp_source.kind, QpSourceConfig::Kind::kNetlink);
  EXPECT_EQ(config->attach, AttachWish::kAuto);
  EXPECT_EQ(config->bpffs, "/sys/fs/bpf");
  EXPECT_EQ(config->run_directory, "/run/roce-te");
  EXPECT_FALSE(config->metrics);
}

TEST(AgentConfig, EveryKeyIsRead) {
  const auto config =
      parse_agent_config(kLeast +
                             "bpffs: /run/b\nrun_directory: /run/r\nqp_source: \"file:/run/qp.json\"\nattach: clsact\n"
                             "metrics: {listen: \"[::]:7413\"}\nlog: debug\nsteering_idle_s: 5\n",
                         "agent.yaml");
  ASSERT_TRUE(config) << config.error().message;
  EXPECT_EQ(config->bpffs, "/run/b");
  EXPECT_EQ(config->run_directory, "/run/r");
  EXPECT_EQ(config->qp_source.path, "/run/qp.json");
  EXPECT_EQ(config->attach, AttachWish::kClsact);
  EXPECT_EQ(config->metrics, (Endpoint{"::", 7413}));
  EXPECT_EQ(config->log, "debug");
  EXPECT_EQ(config->steering_idle_ns, 5'000'000'000);
}

TEST(AgentConfig, UnknownKeyNamesFileAndLine) {
  EXPECT_TRUE(error_of(kLeast + "controler: x\n").starts_with("agent.yaml:7: unknown key 'controler'"));
}

TEST(AgentConfig, WrongValueNamesFileLineAndKey) {
  EXPECT_EQ(error_of(kLeast + "attach: xdp\n"), "agent.yaml:7: attach: expected auto, tcx or clsact, found 'xdp'");
  EXPECT_EQ(error_of(kLeast + "qp_source: guess\n"),
            "agent.yaml:7: qp_source: expected netlink, file:PATH or none, found 'guess'");
  EXPECT_EQ(error_of(kLeast + "run_directory: here\n"), "agent.yaml:7: run_directory: expected an absolute path");
  EXPECT_EQ(error_of(kLeast + "log: loud\n"), "agent.yaml:7: log: expected error, warn, info or debug, found 'loud'");
}

TEST(AgentConfig, MissingKeysAreNamed) {
  EXPECT_EQ(error_of(kLeast.substr(kLeast.find('\n') + 1)), "agent.yaml:1: 'node' is missing");
  EXPECT_NE(error_of("node: h1\n").find("'certificate' is missing"), std::string::npos);
}

TEST(AgentConfig, NodeNameMustBeSafeAsADirectory) {
  std::string yaml = kLeast;
  yaml.replace(0, 8, "node: ../x");
  EXPECT_TRUE(error_of(yaml).starts_with("agent.yaml:1: node: expected letters"));
}

TEST(AgentConfig, InterfaceTwiceIsAnError) {
  std::string yaml = kLeast;
  yaml.replace(yaml.find("[eth0]"), 6, "[eth0, eth0]");
  EXPECT_EQ(error_of(yaml), "agent.yaml:6: interfaces[1]: interface 'eth0' is listed twice");
}

std::string with_interfaces(const std::string& interfaces) {
  std::string yaml = kLeast;
  return yaml.replace(yaml.find("[eth0]"), 6, interfaces);
}

TEST(AgentConfig, InterfaceMayBeInAnotherNetworkNamespace) {
  const auto config = parse_agent_config(
      with_interfaces("[eth0, {name: eth0, netns: /run/netns/pod1, port: eth2}, {name: eth1, netns: /proc/7/ns/net}]"),
      "agent.yaml");
  ASSERT_TRUE(config) << config.error().message;
  ASSERT_EQ(config->interfaces.size(), 3U);
  EXPECT_EQ(config->interfaces[0], (NicName{.interface = "eth0"}));
  EXPECT_EQ(config->interfaces[1], (NicName{.interface = "eth0", .netns = "/run/netns/pod1", .port = "eth2"}));
  EXPECT_EQ(config->interfaces[1].port_name(), "eth2");
  EXPECT_EQ(config->interfaces[2], (NicName{.interface = "eth1", .netns = "/proc/7/ns/net"}));
  EXPECT_EQ(config->interfaces[2].port_name(), "eth1");
}

TEST(AgentConfig, PortsOfTwoNamespacesNeedNamesOfTheirOwn) {
  EXPECT_NE(error_of(with_interfaces("[eth0, {name: eth0, netns: /run/netns/pod1}]"))
                .find("agent.yaml:6: interfaces[1]: port 'eth0' is listed twice; give one"),
            std::string::npos);
  EXPECT_EQ(error_of(with_interfaces("[{name: a, netns: /n, port: x}, {name: a, netns: /n, port: y}]")),
            "agent.yaml:6: interfaces[1]: interface 'a in /n' is listed twice");
}

TEST(AgentConfig, NamespaceThatIsNoPathIsAnError) {
  EXPECT_EQ(error_of(with_interfaces("[{name: eth0, netns: pod1}]")),
            "agent.yaml:6: interfaces[0].netns: expected the path of a network namespace's file (/run/netns/NAME or "
            "/proc/PID/ns/net), found 'pod1'");
  EXPECT_NE(error_of(with_interfaces("[{name: eth0, netns: ''}]")).find("'netns' is empty"), std::string::npos);
  EXPECT_NE(error_of(with_interfaces("[{netns: /run/netns/pod1}]")).find("agent.yaml:6"), std::string::npos);
  EXPECT_NE(error_of(with_interfaces("[{name: eth0, namespace: x}]")).find("netns"), std::string::npos);
  EXPECT_NE(error_of(with_interfaces("[[eth0]]")).find("{name, netns, port}"), std::string::npos);
}

TEST(AgentConfig, SwitchHasNoOtherNamespaces) {
  EXPECT_EQ(error_of(with_interfaces("[{name: eth0, netns: /run/netns/a}]") + "role: switch\n"),
            "agent.yaml:6: interfaces[0]: 'netns' has no meaning in role switch");
}

TEST(AgentConfig, SwitchNeedsNoInterfaces) {
  const std::string least = kLeast.substr(0, kLeast.find("interfaces"));
  EXPECT_NE(error_of(least).find("at least one network interface"), std::string::npos);
  const auto config = parse_agent_config(least + "role: switch\n", "agent.yaml");
  ASSERT_TRUE(config) << config.error().message;
  EXPECT_EQ(config->role, Role::kSwitch);
  EXPECT_TRUE(config->interfaces.empty());
}

TEST(AgentConfig, WhatASwitchDoesNotDoCannotBeSet) {
  EXPECT_EQ(error_of(kLeast + "role: switch\nattach: tcx\n"), "agent.yaml:8: attach: has no meaning in role switch");
  EXPECT_EQ(error_of(kLeast + "role: spine\n"), "agent.yaml:7: role: expected host or switch, found 'spine'");
}

TEST(AgentConfig, NoControllerIsAnError) {
  std::string yaml = kLeast;
  yaml.replace(yaml.find("[\"10.255.0.1:7411\"]"), 19, "[]");
  EXPECT_NE(error_of(yaml).find("at least one address:port"), std::string::npos);
}

TEST(Endpoint, ReadsNamesIpv4AndBracketedIpv6) {
  EXPECT_EQ(*parse_endpoint("te.example:1"), (Endpoint{"te.example", 1}));
  EXPECT_EQ(*parse_endpoint("10.0.0.1:65535"), (Endpoint{"10.0.0.1", 65535}));
  EXPECT_EQ(*parse_endpoint("[fd00::1]:7411"), (Endpoint{"fd00::1", 7411}));
}

TEST(Endpoint, WritesWhatItReads) {
  for (const char* text : {"te.example:1", "10.0.0.1:65535", "[fd00::1]:7411"}) {
    EXPECT_EQ(to_string(*parse_endpoint(text)), text);
  }
}

TEST(Endpoint, RefusesEverythingElse) {
  for (const char* text :
       {"", ":1", "host", "host:", "host:0", "host:65536", "host:1x", "fd00::1:7411", "[]:1", "[::1]"}) {
    EXPECT_FALSE(parse_endpoint(text).ok()) << text;
  }
}

}  // namespace
}  // namespace te::agent
