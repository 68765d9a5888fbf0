// SPDX-License-Identifier: Apache-2.0
#include "common/yaml/yaml_reader.h"

#include <algorithm>
#include <charconv>
#include <cmath>

#include "common/yaml/duplicate_keys.h"

namespace te {
namespace {

template <class T>
std::optional<T> parse_number(const std::string& text) {
  T number{};
  const auto [end, problem] = std::from_chars(text.data(), text.data() + text.size(), number);
  if (problem != std::errc() || end != text.data() + text.size()) return std::nullopt;
  return number;
}

std::string join(std::initializer_list<std::string_view> words) {
  std::string joined;
  for (const std::string_view word : words) joined += (joined.empty() ? "" : ", ") + std::string(word);
  return joined;
}

/// From 1; what is not in the text (the map that an empty text stands for) is told as the first line.
std::string line_of(const YAML::Mark& mark) { return std::to_string(std::max(mark.line, 0) + 1); }

}  // namespace

Result<YamlReader> YamlReader::parse(std::string_view text, std::string source) {
  try {
    if (const auto twice = find_duplicate_key(text)) {
      return Error{source + ":" + std::to_string(twice->line) + ": key '" + twice->key + "' appears twice"};
    }
    YAML::Node node = YAML::Load(std::string(text));
    if (!node || node.IsNull()) node = YAML::Node(YAML::NodeType::Map);
    return YamlReader(node, std::move(source), "");
  } catch (const YAML::Exception& problem) {
    return Error{source + ":" + line_of(problem.mark) + ": not YAML: " + problem.msg};
  }
}

Error YamlReader::error(const std::string& message) const {
  return Error{source_ + ":" + line_of(node_.Mark()) + ": " + (path_.empty() ? "" : path_ + ": ") + message};
}

Result<void> YamlReader::only_keys(std::initializer_list<std::string_view> keys) const {
  if (!node_.IsMap()) return error("expected a map with the keys " + join(keys));
  for (const auto& entry : node_) {
    const YamlReader key(entry.first, source_, path_);
    if (!entry.first.IsScalar()) return key.error("expected a plain key, one of " + join(keys));
    const std::string name = entry.first.Scalar();
    if (std::find(keys.begin(), keys.end(), name) == keys.end()) {
      return key.error("unknown key '" + name + "'; expected one of " + join(keys));
    }
  }
  return {};
}

std::optional<YamlReader> YamlReader::find(std::string_view key) const {
  if (!node_.IsMap()) return std::nullopt;
  const YAML::Node& map = node_;
  const YAML::Node found = map[std::string(key)];
  if (!found.IsDefined() || found.IsNull()) return std::nullopt;
  return YamlReader(found, source_, path_.empty() ? std::string(key) : path_ + "." + std::string(key));
}

bool YamlReader::has(std::string_view key) const { return find(key).has_value(); }

Result<std::vector<std::string>> YamlReader::keys() const {
  if (!node_.IsMap()) return error("expected a map");
  std::vector<std::string> names;
  for (const auto& entry : node_) {
    if (!entry.first.IsScalar()) return YamlReader(entry.first, source_, path_).error("expected a plain key");
    names.push_back(entry.first.Scalar());
  }
  return names;
}

Result<YamlReader> YamlReader::child(std::string_view key) const {
  if (auto found = find(key)) return *std::move(found);
  return error("'" + std::string(key) + "' is missing");
}

Result<std::vector<YamlReader>> YamlReader::list(std::string_view key) const {
  std::vector<YamlReader> elements;
  const auto found = find(key);
  if (!found) return elements;
  if (!found->node_.IsSequence()) return found->error("expected a list");
  for (std::size_t i = 0; i < found->node_.size(); ++i) {
    elements.push_back(YamlReader(found->node_[i], source_, found->path_ + "[" + std::to_string(i) + "]"));
  }
  return elements;
}

Result<std::string> YamlReader::scalar() const {
  if (!node_.IsScalar()) return error("expected one value, not a map or a list");
  return node_.Scalar();
}

Result<std::string> YamlReader::string(std::string_view key) const {
  auto found = child(key);
  if (!found) return std::move(found).error();
  return found->scalar();
}

Result<std::string> YamlReader::string_or(std::string_view key, std::string fallback) const {
  const auto found = find(key);
  if (!found) return fallback;
  return found->scalar();
}

Result<std::int64_t> YamlReader::integer_or(std::string_view key, std::int64_t fallback, std::int64_t least,
                                            std::int64_t most) const {
  const auto found = find(key);
  if (!found) return fallback;
  auto text = found->scalar();
  if (!text) return std::move(text).error();
  const auto number = parse_number<std::int64_t>(*text);
  if (!number || *number < least || *number > most) {
    return found->error("expected a whole number from " + std::to_string(least) + " to " + std::to_string(most) +
                        ", found '" + *text + "'");
  }
  return *number;
}

Result<double> YamlReader::number_or(std::string_view key, double fallback, double least, double most) const {
  const auto found = find(key);
  if (!found) return fallback;
  auto text = found->scalar();
  if (!text) return std::move(text).error();
  const auto number = parse_number<double>(*text);
  if (!number || !std::isfinite(*number) || *number < least || *number > most) {
    return found->error("expected a number from " + std::to_string(least) + " to " + std::to_string(most) +
                        ", found '" + *text + "'");
  }
  return *number;
}

Result<bool> YamlReader::boolean_or(std::string_view key, bool fallback) const {
  const auto found = find(key);
  if (!found) return fallback;
  auto text = found->scalar();
  if (!text) return std::move(text).error();
  if (*text == "true") return true;
  if (*text == "false") return false;
  return found->error("expected true or false, found '" + *text + "'");
}

}  // namespace te
