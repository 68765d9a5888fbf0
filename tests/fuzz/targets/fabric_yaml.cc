// SPDX-License-Identifier: Apache-2.0
#include <cstddef>
#include <cstdint>
#include <string_view>

#include "topology/reader.h"

/// Any text is a fabric or an error that names the source.
extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  const auto fabric = te::read_fabric_yaml(std::string_view(reinterpret_cast<const char*>(data), size), "fuzz.yaml");
  TE_CHECK(fabric.ok() || fabric.error().message.rfind("fuzz.yaml:", 0) == 0, "an error without its source");
  return 0;
}
