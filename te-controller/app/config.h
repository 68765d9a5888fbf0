// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <string_view>

#include "common/base/result.h"
#include "common/net/tls.h"
#include "te-controller/app/access.h"
#include "te-controller/engine/options.h"

namespace te {

/// An address to listen on. `host`: a numeric IPv4 or IPv6 address.
struct ListenAddress {
  std::string host;
  std::uint16_t port = 0;
};

/// The API over TCP.
struct ApiListener {
  ListenAddress listen;
  TlsFiles tls;
  std::map<std::string, Role> roles;  ///< of the common names of client certificates
  std::string tokens_path;            ///< of bearer tokens; empty: none
};

/// The configuration file of te-controller. Paths are as written: relative ones count from the working directory.
struct ControllerConfig {
  std::string topology_path;
  std::string state_path;  ///< SQLite database; made when absent
  ListenAddress agents_listen;
  TlsFiles agents_tls;
  std::string api_socket_path;
  std::optional<ApiListener> api_listener;
  std::string enrolment_authority;  ///< directory of an Authority; empty: nobody can enrol
  int enrolment_days = 365;         ///< that a node's certificate is good
  ListenAddress metrics_listen;     ///< /metrics and /healthz only
  EngineOptions engine;
  std::string log_level;
};

/// Reads "ADDRESS:PORT" or "[IPV6]:PORT"; an Error says what was expected.
Result<ListenAddress> parse_listen_address(std::string_view text);
/// Reads the YAML of a configuration file; `source` names it in errors ("SOURCE:LINE: PATH: what was expected").
/// Unknown keys are errors.
Result<ControllerConfig> parse_controller_config(std::string_view text, const std::string& source);

}  // namespace te
