// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <string>

#include "common/base/result.h"

namespace te::agent {

/// Catches what libbpf has to say on this thread while it lives, so that an Error can carry it instead of stderr.
class BpfMessages {
 public:
  BpfMessages();
  ~BpfMessages();
  BpfMessages(const BpfMessages&) = delete;
  BpfMessages& operator=(const BpfMessages&) = delete;

  /// `doing`, what errno says, what to do about it, and libbpf's own warnings.
  [[nodiscard]] Error error(const std::string& doing, int error_number) const;

 private:
  std::string* outer_;
  std::string text_;
};

}  // namespace te::agent
