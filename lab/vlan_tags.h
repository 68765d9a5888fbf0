// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "common/base/result.h"

namespace te::lab {

/// Programs that put VLAN tags on what leaves an interface and take them off what comes in, loaded into the kernel.
/// What is attached outlives the object.
class VlanTags {
 public:
  /// `vlans`: one or two, the outermost first.
  static Result<VlanTags> load(const std::vector<std::uint16_t>& vlans);
  VlanTags(VlanTags&&) noexcept;
  VlanTags& operator=(VlanTags&&) noexcept;
  ~VlanTags();

  /// Attaches to an interface of the calling process's namespace, nearer to the wire than te-lab's other programs.
  [[nodiscard]] Result<void> attach(const std::string& interface) const;

 private:
  struct Program;
  explicit VlanTags(std::unique_ptr<Program> program);
  std::unique_ptr<Program> program_;
};

}  // namespace te::lab
