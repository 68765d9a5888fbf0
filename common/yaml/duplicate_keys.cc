// SPDX-License-Identifier: Apache-2.0
#include "common/yaml/duplicate_keys.h"

#include <yaml-cpp/eventhandler.h>
#include <yaml-cpp/yaml.h>

#include <set>
#include <sstream>
#include <vector>

namespace te {
namespace {

/// Follows the parser's events rather than the tree: aliases stay what they are, so that the work is never more than
/// the text is long.
class KeyWatcher : public YAML::EventHandler {
 public:
  std::optional<DuplicateKey> found;

  void OnDocumentStart(const YAML::Mark&) override {}
  void OnDocumentEnd() override {}
  void OnNull(const YAML::Mark&, YAML::anchor_t) override { begin_node(); }
  void OnAlias(const YAML::Mark&, YAML::anchor_t) override { begin_node(); }
  void OnScalar(const YAML::Mark& mark, const std::string&, YAML::anchor_t, const std::string& value) override {
    if (!begin_node() || found) return;
    if (!open_.back().keys.insert(value).second) found = DuplicateKey{value, mark.line + 1};
  }
  void OnSequenceStart(const YAML::Mark&, const std::string&, YAML::anchor_t, YAML::EmitterStyle::value) override {
    begin_node();
    open_.push_back({.is_map = false});
  }
  void OnSequenceEnd() override { open_.pop_back(); }
  void OnMapStart(const YAML::Mark&, const std::string&, YAML::anchor_t, YAML::EmitterStyle::value) override {
    begin_node();
    open_.push_back({.is_map = true});
  }
  void OnMapEnd() override { open_.pop_back(); }

 private:
  struct Collection {
    bool is_map = false;
    bool key_is_next = true;
    std::set<std::string> keys = {};
  };

  /// Whether the node that begins is the key of a map.
  bool begin_node() {
    if (open_.empty() || !open_.back().is_map) return false;
    const bool is_key = open_.back().key_is_next;
    open_.back().key_is_next = !is_key;
    return is_key;
  }

  std::vector<Collection> open_;
};

}  // namespace

std::optional<DuplicateKey> find_duplicate_key(std::string_view text) {
  std::istringstream input{std::string(text)};
  YAML::Parser parser(input);
  KeyWatcher watcher;
  parser.HandleNextDocument(watcher);
  return watcher.found;
}

}  // namespace te
