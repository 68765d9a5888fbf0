// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "common/base/result.h"

namespace te::agent {

/// A host name or address and a TCP port.
struct Endpoint {
  std::string host;
  std::uint16_t port = 0;
  auto operator<=>(const Endpoint&) const = default;
};

/// Reads "host:port", "10.0.0.1:7411" or "[fd00::1]:7411".
Result<Endpoint> parse_endpoint(std::string_view text);
[[nodiscard]] std::string to_string(const Endpoint& endpoint);

/// Where the table of queue pairs comes from.
struct QpSourceConfig {
  enum class Kind : std::uint8_t { kNone, kNetlink, kFile };
  Kind kind = Kind::kNetlink;
  std::string path;  ///< kFile only
};

enum class AttachWish : std::uint8_t { kAuto, kTcx, kClsact };

Result<QpSourceConfig> parse_qp_source(std::string_view text);
Result<AttachWish> parse_attach(std::string_view text);

/// A network interface and where it is.
struct NicName {
  std::string interface;
  std::string netns = {};  ///< file of its network namespace; empty: the agent's own
  std::string port = {};   ///< what the topology file calls it; empty: as the interface
  bool operator==(const NicName&) const = default;
  /// What the controller is told.
  [[nodiscard]] const std::string& port_name() const { return port.empty() ? interface : port; }
};

/// "eth0", or "eth0 in /run/netns/pod1".
[[nodiscard]] std::string to_string(const NicName& nic);

/// What kind of node the agent runs on. On a switch it reports links and does nothing else.
enum class Role : std::uint8_t { kHost, kSwitch };

/// host-agent's configuration file.
struct AgentConfig {
  std::string node;
  Role role = Role::kHost;
  std::vector<Endpoint> controllers;  ///< tried in turn
  std::string certificate;
  std::string key;
  std::string ca;
  std::vector<NicName> interfaces;  ///< of a switch: empty for all but the loopback
  std::string bpffs = "/sys/fs/bpf";
  std::string run_directory = "/run/roce-te";  ///< of the file that a running agent locks
  QpSourceConfig qp_source;
  AttachWish attach = AttachWish::kAuto;
  std::int64_t steering_idle_ns = 600'000'000'000;  ///< a steered flow without a packet for so long is let go
  std::optional<Endpoint> metrics;
  std::string log = "info";
};

/// Reads the YAML text; `source` is its file's name. Errors read "FILE:LINE: what was expected".
Result<AgentConfig> parse_agent_config(std::string_view yaml, const std::string& source);

}  // namespace te::agent
