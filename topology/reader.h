// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <string>
#include <string_view>

#include "common/base/result.h"
#include "topology/fabric.h"

namespace te {

/// Reads an operator's topology file (docs/topology.md): version, nodes, links. `source_name` is for messages only.
/// Errors read "SOURCE:LINE: PATH: what was expected".
Result<Fabric> read_fabric_yaml(std::string_view text, const std::string& source_name);

}  // namespace te
