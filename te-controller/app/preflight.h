// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <string>
#include <vector>

#include "common/base/result.h"
#include "te-controller/app/config.h"
#include "topology/fabric.h"

namespace te {

Result<ControllerConfig> load_controller_config(const std::string& path);
Result<Fabric> load_fabric(const std::string& path);
/// Of `api.tokens_file`; none when that is not configured.
Result<std::vector<ApiToken>> load_api_tokens(const ApiListener& listener);

/// Looks at what a controller of this configuration needs around it, and changes nothing: a certificate of its name,
/// directories for the state and the API's socket, a socket path that fits. An Error says what is wrong and what to do.
Result<void> check_surroundings(const ControllerConfig& config);

/// What a look at a configuration found.
struct ConfigReport {
  std::vector<std::string> faults;  ///< each says what, where and what to do
  std::size_t nodes = 0;            ///< of the topology file
  std::size_t links = 0;
};
/// Looks at a configuration file and at every file and directory that it names, as far as it can be read. Changes
/// nothing.
ConfigReport check_config(const std::string& path);

}  // namespace te
