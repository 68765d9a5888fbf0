// SPDX-License-Identifier: Apache-2.0
#include "host-agent/core/agent_config.h"

#include <algorithm>
#include <charconv>
#include <set>
#include <utility>

#include "common/yaml/yaml_reader.h"

namespace te::agent {
namespace {

constexpr std::size_t kMaxInterfaceName = 15;  // IFNAMSIZ - 1
constexpr std::size_t kMaxNodeName = 253;      // of a DNS name

Result<std::uint16_t> parse_port(std::string_view text) {
  std::uint16_t port = 0;
  const auto [end, problem] = std::from_chars(text.data(), text.data() + text.size(), port);
  if (problem != std::errc() || end != text.data() + text.size() || port == 0) {
    return Error{"'" + std::string(text) + "' is no port from 1 to 65535"};
  }
  return port;
}

/// The node's name becomes a directory on the bpffs and a certificate's common name.
bool is_node_name(std::string_view name) {
  return !name.empty() && name.size() <= kMaxNodeName && name.front() != '.' &&
         std::all_of(name.begin(), name.end(), [](char c) {
           return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9') || c == '-' || c == '_' ||
                  c == '.';
         });
}

Result<void> read_text(const YamlReader& yaml, std::string_view key, std::string& into) {
  auto text = yaml.string(key);
  if (!text) return std::move(text).error();
  if (text->empty()) return yaml.error("'" + std::string(key) + "' is empty");
  into = *std::move(text);
  return {};
}

/// The error of `parsed` told for the line of `key`.
template <class T>
Error error_at(const YamlReader& yaml, std::string_view key, const Result<T>& parsed) {
  const auto child = yaml.child(key);
  return child ? child->error(parsed.error().message) : child.error();
}

Result<void> read_identity(const YamlReader& yaml, AgentConfig& config) {
  for (const auto& [key, into] : {std::pair{"node", &config.node}, std::pair{"certificate", &config.certificate},
                                  std::pair{"key", &config.key}, std::pair{"ca", &config.ca}}) {
    if (auto read = read_text(yaml, key, *into); !read) return read;
  }
  if (!is_node_name(config.node)) {
    return error_at(yaml, "node",
                    Result<void>(Error{"expected letters, digits, '-', '_' and '.', found '" + config.node + "'"}));
  }
  return {};
}

Result<void> read_role(const YamlReader& yaml, AgentConfig& config) {
  const auto role = yaml.string_or("role", "host");
  if (!role) return role.error();
  if (*role == "host") return {};
  if (*role != "switch") {
    return error_at(yaml, "role", Result<void>(Error{"expected host or switch, found '" + *role + "'"}));
  }
  config.role = Role::kSwitch;
  for (const char* key : {"qp_source", "attach", "steering_idle_s"}) {
    if (yaml.has(key)) return error_at(yaml, key, Result<void>(Error{"has no meaning in role switch"}));
  }
  return {};
}

Result<void> read_controllers(const YamlReader& yaml, AgentConfig& config) {
  const auto list = yaml.list("controllers");
  if (!list) return list.error();
  for (const YamlReader& element : *list) {
    const auto text = element.scalar();
    if (!text) return text.error();
    auto endpoint = parse_endpoint(*text);
    if (!endpoint) return element.error(endpoint.error().message);
    config.controllers.push_back(*std::move(endpoint));
  }
  if (config.controllers.empty()) return yaml.error("'controllers' must list at least one address:port");
  return {};
}

Result<std::string> interface_name(const YamlReader& yaml, Result<std::string> name) {
  if (!name) return name;
  if (name->empty() || name->size() > kMaxInterfaceName || name->find('/') != std::string::npos) {
    return yaml.error("expected the name of a network interface, found '" + *name + "'");
  }
  return name;
}

/// "eth0" or {name: eth0, netns: /run/netns/pod1, port: eth2}.
Result<NicName> read_nic(const YamlReader& yaml) {
  NicName nic;
  if (!yaml.keys()) {
    auto name = interface_name(yaml, yaml.scalar());
    if (!name)
      return yaml.scalar() ? std::move(name).error()
                           : yaml.error("expected the name of a network interface or {name, netns, port}");
    nic.interface = *std::move(name);
    return nic;
  }
  if (auto known = yaml.only_keys({"name", "netns", "port"}); !known) return std::move(known).error();
  auto name = interface_name(yaml, yaml.string("name"));
  if (!name) return std::move(name).error();
  nic.interface = *std::move(name);
  for (const auto& [key, into] : {std::pair{"netns", &nic.netns}, std::pair{"port", &nic.port}}) {
    if (!yaml.has(key)) continue;
    if (auto read = read_text(yaml, key, *into); !read) return std::move(read).error();
  }
  if (!nic.netns.empty() && !nic.netns.starts_with('/')) {
    return error_at(yaml, "netns",
                    Result<void>(Error{"expected the path of a network namespace's file (/run/netns/NAME or "
                                       "/proc/PID/ns/net), found '" +
                                       nic.netns + "'"}));
  }
  return nic;
}

Result<void> read_interfaces(const YamlReader& yaml, AgentConfig& config) {
  const auto list = yaml.list("interfaces");
  if (!list) return list.error();
  std::set<std::pair<std::string, std::string>> seen;
  std::set<std::string> ports;
  for (const YamlReader& element : *list) {
    auto nic = read_nic(element);
    if (!nic) return std::move(nic).error();
    if (!nic->netns.empty() && config.role == Role::kSwitch) {
      return element.error("'netns' has no meaning in role switch");
    }
    if (!seen.emplace(nic->netns, nic->interface).second) {
      return element.error("interface '" + to_string(*nic) + "' is listed twice");
    }
    if (!ports.insert(nic->port_name()).second) {
      return element.error("port '" + nic->port_name() +
                           "' is listed twice; give one of them the name that it has in the "
                           "topology file, by 'port'");
    }
    config.interfaces.push_back(*std::move(nic));
  }
  if (config.interfaces.empty() && config.role == Role::kHost)
    return yaml.error("'interfaces' must list at least one network interface");
  return {};
}

Result<void> read_metrics(const YamlReader& yaml, AgentConfig& config) {
  if (!yaml.has("metrics")) return {};
  const auto metrics = yaml.child("metrics");
  if (!metrics) return metrics.error();
  if (auto known = metrics->only_keys({"listen"}); !known) return known;
  const auto listen = metrics->string("listen");
  if (!listen) return listen.error();
  auto endpoint = parse_endpoint(*listen);
  if (!endpoint) return error_at(*metrics, "listen", endpoint);
  config.metrics = *std::move(endpoint);
  return {};
}

Result<void> read_sources(const YamlReader& yaml, AgentConfig& config) {
  const auto qp_text = yaml.string_or("qp_source", "netlink");
  if (!qp_text) return qp_text.error();
  auto qp_source = parse_qp_source(*qp_text);
  if (!qp_source) return error_at(yaml, "qp_source", qp_source);
  config.qp_source = *std::move(qp_source);

  const auto attach_text = yaml.string_or("attach", "auto");
  if (!attach_text) return attach_text.error();
  const auto attach = parse_attach(*attach_text);
  if (!attach) return error_at(yaml, "attach", attach);
  config.attach = *attach;

  constexpr std::int64_t kMostIdleS = 30LL * 24 * 3600;
  constexpr std::int64_t kSecond = 1'000'000'000;
  const auto idle_s = yaml.integer_or("steering_idle_s", config.steering_idle_ns / kSecond, 1, kMostIdleS);
  if (!idle_s) return idle_s.error();
  config.steering_idle_ns = *idle_s * kSecond;
  return {};
}

Result<void> read_settings(const YamlReader& yaml, AgentConfig& config) {
  for (const auto& [key, into] :
       {std::pair{"bpffs", &config.bpffs}, std::pair{"run_directory", &config.run_directory}}) {
    auto path = yaml.string_or(key, *into);
    if (!path) return std::move(path).error();
    if (!path->starts_with('/')) return error_at(yaml, key, Result<void>(Error{"expected an absolute path"}));
    *into = *std::move(path);
  }
  auto log = yaml.string_or("log", config.log);
  if (!log) return std::move(log).error();
  if (*log != "error" && *log != "warn" && *log != "info" && *log != "debug") {
    return error_at(yaml, "log", Result<void>(Error{"expected error, warn, info or debug, found '" + *log + "'"}));
  }
  config.log = *std::move(log);
  return {};
}

}  // namespace

Result<Endpoint> parse_endpoint(std::string_view text) {
  const std::size_t colon = text.rfind(':');
  if (colon == std::string_view::npos || colon == 0) {
    return Error{"expected address:port, found '" + std::string(text) + "'"};
  }
  std::string_view host = text.substr(0, colon);
  if (host.front() == '[' && host.back() == ']' && host.size() > 2) {
    host = host.substr(1, host.size() - 2);
  } else if (host.find_first_of(":[]") != std::string_view::npos) {
    return Error{"expected address:port with an IPv6 address in brackets, found '" + std::string(text) + "'"};
  }
  const auto port = parse_port(text.substr(colon + 1));
  if (!port) return port.error();
  return Endpoint{std::string(host), *port};
}

std::string to_string(const Endpoint& endpoint) {
  const bool v6 = endpoint.host.find(':') != std::string::npos;
  return (v6 ? "[" + endpoint.host + "]" : endpoint.host) + ":" + std::to_string(endpoint.port);
}

std::string to_string(const NicName& nic) {
  return nic.netns.empty() ? nic.interface : nic.interface + " in " + nic.netns;
}

Result<QpSourceConfig> parse_qp_source(std::string_view text) {
  if (text == "none") return QpSourceConfig{QpSourceConfig::Kind::kNone, {}};
  if (text == "netlink") return QpSourceConfig{QpSourceConfig::Kind::kNetlink, {}};
  constexpr std::string_view kFilePrefix = "file:";
  if (text.starts_with(kFilePrefix) && text.size() > kFilePrefix.size()) {
    return QpSourceConfig{QpSourceConfig::Kind::kFile, std::string(text.substr(kFilePrefix.size()))};
  }
  return Error{"expected netlink, file:PATH or none, found '" + std::string(text) + "'"};
}

Result<AttachWish> parse_attach(std::string_view text) {
  if (text == "auto") return AttachWish::kAuto;
  if (text == "tcx") return AttachWish::kTcx;
  if (text == "clsact") return AttachWish::kClsact;
  return Error{"expected auto, tcx or clsact, found '" + std::string(text) + "'"};
}

Result<AgentConfig> parse_agent_config(std::string_view text, const std::string& source) {
  const auto yaml = YamlReader::parse(text, source);
  if (!yaml) return yaml.error();
  if (auto known = yaml->only_keys({"node", "controllers", "certificate", "key", "ca", "interfaces", "bpffs", "role",
                                    "run_directory", "qp_source", "attach", "steering_idle_s", "metrics", "log"});
      !known) {
    return std::move(known).error();
  }
  AgentConfig config;
  for (const auto read :
       {read_identity, read_role, read_controllers, read_interfaces, read_sources, read_metrics, read_settings}) {
    if (auto done = read(*yaml, config); !done) return std::move(done).error();
  }
  return config;
}

}  // namespace te::agent
