// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>
#include <string>

#include "common/base/result.h"
#include "lab/fabric.h"

namespace te::lab {

/// One end of one cable.
struct CableEnd {
  std::size_t link = 0;  ///< index into Fabric::links
  bool is_a = true;      ///< Link::a, else Link::b
  bool operator==(const CableEnd&) const = default;
};

/// Reads "NODE:PORT". An Error says which nodes or ports there are.
Result<CableEnd> find_end(const Fabric& fabric, const std::string& name);
/// Index of a switch. An Error says which there are.
Result<std::size_t> find_switch(const Fabric& fabric, const std::string& name);
[[nodiscard]] CableEnd other_end(const CableEnd& end);
[[nodiscard]] const Port& port_at(const Fabric& fabric, const CableEnd& end);
/// "NODE:PORT"
[[nodiscard]] std::string end_name(const Fabric& fabric, const CableEnd& end);
/// Every node's name, in short: "h1 to h8, leaf1, leaf2, spine1 to spine4".
[[nodiscard]] std::string node_names(const Fabric& fabric);

}  // namespace te::lab
