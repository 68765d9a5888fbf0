// SPDX-License-Identifier: Apache-2.0
#include "te-controller/app/config.h"

#include <charconv>
#include <initializer_list>

#include "common/base/ip_address.h"
#include "common/yaml/yaml_reader.h"

namespace te {
namespace {

/// Stores the value of `read` in `target`; returns its Error otherwise.
template <class T, class U>
Result<void> store(Result<T> read, U& target) {
  if (!read) return std::move(read).error();
  target = static_cast<U>(*std::move(read));
  return {};
}

/// The first failure of `steps`, in order; each step runs only when those before it succeeded.
template <class... Steps>
Result<void> in_turn(Steps... steps) {
  Result<void> outcome;
  (void)((outcome = steps(), outcome.ok()) && ...);
  return outcome;
}

Result<void> read_listen(const YamlReader& map, std::string_view key, const std::string& fallback,
                         ListenAddress& target) {
  auto text = fallback.empty() ? map.string(key) : map.string_or(key, fallback);
  if (!text) return std::move(text).error();
  auto address = parse_listen_address(*text);
  if (!address) {
    auto place = map.child(key);
    return (place ? *place : map).error(address.error().message);
  }
  target = *std::move(address);
  return {};
}

Result<void> read_agents(const YamlReader& root, ControllerConfig& config) {
  auto agents = root.child("agents");
  if (!agents) return std::move(agents).error();
  return in_turn(
      [&] {
        return agents->only_keys({"listen", "certificate", "key", "ca", "crl"});
      },
      [&] { return read_listen(*agents, "listen", "0.0.0.0:7411", config.agents_listen); },
      [&] { return store(agents->string("certificate"), config.agents_tls.certificate); },
      [&] { return store(agents->string("key"), config.agents_tls.key); },
      [&] { return store(agents->string("ca"), config.agents_tls.ca); },
      [&] { return store(agents->string_or("crl", ""), config.agents_tls.crl); });
}

Result<void> read_roles(const YamlReader& api, ApiListener& listener) {
  if (!api.has("roles")) return {};
  const auto roles = api.child("roles");
  if (!roles) return roles.error();
  const auto names = roles->keys();
  if (!names) return names.error();
  for (const std::string& name : *names) {
    const auto text = roles->string(name);
    if (!text) return text.error();
    const auto role = parse_role(*text);
    if (!role) return roles->child(name)->error("expected view, operate or isolate, found '" + *text + "'");
    listener.roles[name] = *role;
  }
  return {};
}

/// `api.listen` and what belongs to it.
Result<void> read_api_listener(const YamlReader& api, ControllerConfig& config) {
  if (!api.has("listen")) {
    for (const std::string_view key : {"tls", "roles", "tokens_file"})
      if (api.has(key)) return api.error("'" + std::string(key) + "' is of use with 'listen' only: ADDRESS:PORT");
    return {};
  }
  ApiListener& listener = config.api_listener.emplace();
  if (!api.has("tls")) return api.error("'listen' needs 'tls': {certificate: FILE, key: FILE, client_ca: FILE}");
  const auto tls = api.child("tls");
  if (!tls) return tls.error();
  return in_turn([&] { return read_listen(api, "listen", "", listener.listen); },
                 [&] {
                   return tls->only_keys({"certificate", "key", "client_ca", "crl"});
                 },
                 [&] { return store(tls->string("certificate"), listener.tls.certificate); },
                 [&] { return store(tls->string("key"), listener.tls.key); },
                 [&] { return store(tls->string("client_ca"), listener.tls.ca); },
                 [&] { return store(tls->string_or("crl", ""), listener.tls.crl); },
                 [&] { return read_roles(api, listener); },
                 [&] { return store(api.string_or("tokens_file", ""), listener.tokens_path); });
}

Result<void> read_enrolment(const YamlReader& root, ControllerConfig& config) {
  if (!root.has("enrolment")) return {};
  const auto map = root.child("enrolment");
  if (!map) return map.error();
  if (!config.api_listener) return map->error("nodes enrol through 'api.listen', which is missing");
  return in_turn(
      [&] {
        return map->only_keys({"authority", "days"});
      },
      [&] { return store(map->string("authority"), config.enrolment_authority); },
      [&] { return store(map->integer_or("days", config.enrolment_days, 1, 3650), config.enrolment_days); });
}

Result<void> read_api(const YamlReader& root, ControllerConfig& config) {
  auto api = root.child("api");
  if (!api) return std::move(api).error();
  return in_turn(
      [&] {
        return api->only_keys({"unix", "listen", "tls", "roles", "tokens_file"});
      },
      [&] { return store(api->string("unix"), config.api_socket_path); },
      [&] { return read_api_listener(*api, config); });
}

Result<void> read_metrics(const YamlReader& root, ControllerConfig& config) {
  if (!root.has("metrics")) return store(parse_listen_address("127.0.0.1:7412"), config.metrics_listen);
  auto metrics = root.child("metrics");
  if (!metrics) return std::move(metrics).error();
  return in_turn([&] { return metrics->only_keys({"listen"}); },
                 [&] { return read_listen(*metrics, "listen", "127.0.0.1:7412", config.metrics_listen); });
}

Result<void> read_mode(const YamlReader& root, ControllerConfig& config) {
  auto text = root.string_or("mode", "observe");
  if (!text) return std::move(text).error();
  if (*text != "observe" && *text != "act") {
    auto place = root.child("mode");
    return (place ? *place : root).error("expected observe or act, found '" + *text + "'");
  }
  config.engine.initial_mode = *text == "act" ? Mode::kAct : Mode::kObserve;
  return {};
}

Result<void> read_planning(const YamlReader& root, PlanningOptions& planning) {
  if (!root.has("planning")) return {};
  auto map = root.child("planning");
  if (!map) return std::move(map).error();
  return in_turn(
      [&] {
        return map->only_keys({"interval_ms", "hysteresis", "cooldown_ms", "moves_per_cycle"});
      },
      [&] { return store(map->integer_or("interval_ms", planning.interval_ms, 10, 60000), planning.interval_ms); },
      [&] { return store(map->number_or("hysteresis", planning.hysteresis, 0, 1), planning.hysteresis); },
      [&] { return store(map->integer_or("cooldown_ms", planning.cooldown_ms, 0, 3600000), planning.cooldown_ms); },
      [&] {
        return store(map->integer_or("moves_per_cycle", planning.moves_per_cycle, 1, 100000), planning.moves_per_cycle);
      });
}

Result<void> read_probing(const YamlReader& root, ProbingOptions& probing) {
  if (!root.has("probing")) return {};
  auto map = root.child("probing");
  if (!map) return std::move(map).error();
  return in_turn(
      [&] {
        return map->only_keys({"answers_per_switch_per_s", "attempts", "timeout_ms"});
      },
      [&] {
        return store(map->number_or("answers_per_switch_per_s", probing.answers_per_switch_per_s, 1, 1e6),
                     probing.answers_per_switch_per_s);
      },
      [&] { return store(map->integer_or("attempts", probing.attempts, 1, 10), probing.attempts); },
      [&] { return store(map->integer_or("timeout_ms", probing.timeout_ms, 10, 5000), probing.timeout_ms); });
}

Result<void> read_log(const YamlReader& root, ControllerConfig& config) {
  auto level = root.string_or("log", "info");
  if (!level) return std::move(level).error();
  for (const std::string_view known : {"error", "warn", "info", "debug"}) {
    if (*level == known) {
      config.log_level = *std::move(level);
      return {};
    }
  }
  auto place = root.child("log");
  return (place ? *place : root).error("expected error, warn, info or debug, found '" + *level + "'");
}

}  // namespace

Result<ListenAddress> parse_listen_address(std::string_view text) {
  const Error wrong{"expected ADDRESS:PORT as in 0.0.0.0:7411 or [::]:7411, found '" + std::string(text) + "'"};
  const std::size_t colon = text.rfind(':');
  if (colon == std::string_view::npos) return wrong;
  std::string_view host = text.substr(0, colon);
  const std::string_view port_text = text.substr(colon + 1);
  const bool bracketed = host.size() > 2 && host.front() == '[' && host.back() == ']';
  if (bracketed) host = host.substr(1, host.size() - 2);
  unsigned port = 0;
  const auto [end, problem] = std::from_chars(port_text.data(), port_text.data() + port_text.size(), port);
  if (problem != std::errc() || end != port_text.data() + port_text.size() || port > 65535) return wrong;
  const auto address = IpAddress::parse(host);
  if (!address || address->is_v6() != bracketed) return wrong;
  return ListenAddress{.host = std::string(host), .port = static_cast<std::uint16_t>(port)};
}

Result<ControllerConfig> parse_controller_config(std::string_view text, const std::string& source) {
  auto root = YamlReader::parse(text, source);
  if (!root) return std::move(root).error();
  ControllerConfig config;
  EngineOptions& engine = config.engine;
  const auto read = in_turn(
      [&] {
        return root->only_keys({"topology", "state", "agents", "api", "enrolment", "metrics", "mode", "planning",
                                "probing", "report_interval_ms", "log"});
      },
      [&] { return store(root->string("topology"), config.topology_path); },
      [&] { return store(root->string("state"), config.state_path); }, [&] { return read_agents(*root, config); },
      [&] { return read_api(*root, config); }, [&] { return read_enrolment(*root, config); },
      [&] { return read_metrics(*root, config); }, [&] { return read_mode(*root, config); },
      [&] { return read_planning(*root, engine.planning); }, [&] { return read_probing(*root, engine.probing); },
      [&] {
        return store(root->integer_or("report_interval_ms", engine.report_interval_ms, 50, 60000),
                     engine.report_interval_ms);
      },
      [&] { return read_log(*root, config); });
  if (!read) return read.error();
  return config;
}

}  // namespace te
