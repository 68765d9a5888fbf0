// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "common/base/result.h"
#include "te-controller/app/config.h"

namespace te {

/// What agents ask the controller's certificate to be named.
inline constexpr const char* kControllerName = "te-controller";

/// Looks at what a controller of this configuration needs around it, and changes nothing: a certificate of its name,
/// directories for the state and the API's socket, a socket path that fits. An Error says what is wrong and what to do.
Result<void> check_surroundings(const ControllerConfig& config);

}  // namespace te
