// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <optional>
#include <string>
#include <string_view>

namespace te {

/// A key that a map of a YAML text has twice.
struct DuplicateKey {
  std::string key;
  int line = 0;  ///< of the second one, from 1
};

/// The first key that appears twice in one map of the text's first document. Throws YAML::Exception when it is no YAML.
std::optional<DuplicateKey> find_duplicate_key(std::string_view text);

}  // namespace te
