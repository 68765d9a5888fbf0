// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "common/base/result.h"

namespace te::lab {

/// The switches' congestion marking program, loaded into the kernel. What is attached outlives the object.
class Marker {
 public:
  /// Marks from a queue of `mark_bytes` on.
  static Result<Marker> load(std::uint32_t mark_bytes);
  Marker(Marker&&) noexcept;
  Marker& operator=(Marker&&) noexcept;
  ~Marker();

  /// Attaches to the egress of interfaces of the calling process's namespace.
  [[nodiscard]] Result<void> attach(const std::vector<std::string>& interfaces) const;

 private:
  struct Program;
  explicit Marker(std::unique_ptr<Program> program);
  std::unique_ptr<Program> program_;
};

}  // namespace te::lab
