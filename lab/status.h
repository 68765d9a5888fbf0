// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <string>

#include "common/base/result.h"

namespace te::lab {

/// What there is of a lab and what is wrong with it, for people or as JSON. Moves the process into one of its
/// namespaces.
Result<std::string> describe(const std::string& id, bool as_json);

}  // namespace te::lab
