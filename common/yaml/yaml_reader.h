// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <yaml-cpp/yaml.h>

#include <cstdint>
#include <initializer_list>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "common/base/result.h"

namespace te {

/// One place in a YAML text. Errors read "SOURCE:LINE: PATH: what was expected, what was found".
class YamlReader {
 public:
  /// Parses `text`; `source` (a file's name) is for messages only. An empty text is an empty map. A map with a key
  /// twice is an Error.
  static Result<YamlReader> parse(std::string_view text, std::string source);

  /// An Error when this is no map, or has a key that is not in `keys` (the message lists them).
  [[nodiscard]] Result<void> only_keys(std::initializer_list<std::string_view> keys) const;
  [[nodiscard]] bool has(std::string_view key) const;
  /// The keys of a map, in the order of the text; an Error when this is no map.
  [[nodiscard]] Result<std::vector<std::string>> keys() const;
  /// The child under `key`; an Error when it is absent.
  [[nodiscard]] Result<YamlReader> child(std::string_view key) const;
  /// The elements of the list under `key`; absent is an empty list.
  [[nodiscard]] Result<std::vector<YamlReader>> list(std::string_view key) const;

  [[nodiscard]] Result<std::string> string(std::string_view key) const;
  [[nodiscard]] Result<std::string> string_or(std::string_view key, std::string fallback) const;
  [[nodiscard]] Result<std::int64_t> integer_or(std::string_view key, std::int64_t fallback, std::int64_t least,
                                                std::int64_t most) const;
  [[nodiscard]] Result<double> number_or(std::string_view key, double fallback, double least, double most) const;
  [[nodiscard]] Result<bool> boolean_or(std::string_view key, bool fallback) const;
  /// This node itself as text; an Error when it is a map or a list.
  [[nodiscard]] Result<std::string> scalar() const;

  /// "SOURCE:LINE: PATH: message" for this place.
  [[nodiscard]] Error error(const std::string& message) const;

 private:
  YamlReader(const YAML::Node& node, std::string source, std::string path)
      : node_(node), source_(std::move(source)), path_(std::move(path)) {}
  [[nodiscard]] std::optional<YamlReader> find(std::string_view key) const;

  YAML::Node node_;
  std::string source_;
  std::string path_;
};

}  // namespace te
