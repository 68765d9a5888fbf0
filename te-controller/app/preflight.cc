// SPDX-License-Identifier: Apache-2.0
#include "te-controller/app/preflight.h"

#include <sys/stat.h>
#include <unistd.h>

#include <filesystem>
#include <string>

#include "common/os/file.h"

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

}  // namespace

Result<void> check_surroundings(const ControllerConfig& config) {
  if (auto good = check_certificate(config.agents_tls.certificate); !good) return good;
  if (auto good = check_directory_of("state", config.state_path); !good) return good;
  if (config.api_socket_path.size() > kLongestSocketPath) {
    return Error{"api.unix " + config.api_socket_path + ": a Unix socket's path has at most " +
                 std::to_string(kLongestSocketPath) + " bytes"};
  }
  return check_directory_of("api.unix", config.api_socket_path);
}

}  // namespace te
