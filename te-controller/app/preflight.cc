// SPDX-License-Identifier: Apache-2.0
#include "te-controller/app/preflight.h"

#include <sys/stat.h>
#include <unistd.h>

#include <filesystem>
#include <string>

#include "common/net/authority.h"
#include "common/os/file.h"
#include "topology/reader.h"

namespace te {
namespace {

constexpr std::size_t kLongestSocketPath = 107;  // sun_path, without its end

Result<void> check_certificate(const std::string& path) {
  const auto name = certificate_common_name(path);
  if (!name) return name.error();
  if (*name == kControllerName) return {};
  return Error{"agents.certificate " + path + ": its common name is '" + *name + "', but agents only talk to '" +
               kControllerName + "'; issue one of that name"};
}

/// `what` names the key of the configuration file that `path` stands under.
Result<void> check_directory_of(const std::string& what, const std::string& path) {
  const std::filesystem::path parent = std::filesystem::path(path).parent_path();
  const std::string directory = parent.empty() ? "." : parent.string();
  const std::string where = what + " " + path + ": its directory " + directory;
  struct stat found {};
  if (::stat(directory.c_str(), &found) != 0) return errno_error(where);
  if (!S_ISDIR(found.st_mode)) return Error{where + " is no directory"};
  if (::access(directory.c_str(), W_OK | X_OK) != 0) return errno_error(where + " cannot be written");
  return {};
}

Result<void> check_socket(const std::string& path) {
  if (path.size() > kLongestSocketPath) {
    return Error{"api.unix " + path + ": a Unix socket's path has at most " + std::to_string(kLongestSocketPath) +
                 " bytes"};
  }
  return check_directory_of("api.unix", path);
}

}  // namespace

Result<void> check_surroundings(const ControllerConfig& config) {
  if (auto good = check_certificate(config.agents_tls.certificate); !good) return good;
  if (auto good = check_directory_of("state", config.state_path); !good) return good;
  return check_socket(config.api_socket_path);
}

Result<ControllerConfig> load_controller_config(const std::string& path) {
  const auto text = read_file(path);
  if (!text) return text.error();
  return parse_controller_config(*text, path);
}

Result<Fabric> load_fabric(const std::string& path) {
  const auto text = read_file(path);
  if (!text) return text.error();
  return read_fabric_yaml(*text, path);
}

Result<std::vector<ApiToken>> load_api_tokens(const ApiListener& listener) {
  if (listener.tokens_path.empty()) return std::vector<ApiToken>();
  const auto text = read_file(listener.tokens_path);
  if (!text) return with_context(text.error(), "api.tokens_file");
  return parse_api_tokens(*text, listener.tokens_path);
}

ConfigReport check_config(const std::string& path) {
  ConfigReport report;
  const auto note = [&report](const std::string& key, const auto& result) {
    if (!result) report.faults.push_back(key.empty() ? result.error().message : key + ": " + result.error().message);
    return result.ok();
  };
  const auto config = load_controller_config(path);
  if (!note("", config)) return report;
  const auto fabric = load_fabric(config->topology_path);
  if (note("topology", fabric)) {
    report.nodes = fabric->nodes().size();
    report.links = fabric->links().size();
  }
  if (note("agents", make_tls_context(config->agents_tls, TlsSide::kServer)))
    note("", check_certificate(config->agents_tls.certificate));
  note("", check_directory_of("state", config->state_path));
  note("", check_socket(config->api_socket_path));
  if (config->api_listener) {
    note("api.tls", make_tls_context(config->api_listener->tls, TlsSide::kServer, PeerCertificate::kOptional));
    note("", load_api_tokens(*config->api_listener));
  }
  if (!config->enrolment_authority.empty()) note("enrolment.authority", Authority::open(config->enrolment_authority));
  return report;
}

}  // namespace te
