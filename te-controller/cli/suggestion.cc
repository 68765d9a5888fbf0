// SPDX-License-Identifier: Apache-2.0
#include <algorithm>
#include <numeric>
#include <utility>

#include "te-controller/cli/command_tree.h"

namespace te {
namespace {

/// Letters to insert, delete or replace (Levenshtein); two exchanged neighbours count as two.
std::size_t distance(const std::string& from, const std::string& to) {
  std::vector<std::size_t> row(to.size() + 1);
  std::iota(row.begin(), row.end(), std::size_t{0});
  for (std::size_t i = 0; i < from.size(); ++i) {
    std::size_t diagonal = std::exchange(row[0], i + 1);
    for (std::size_t j = 0; j < to.size(); ++j) {
      const std::size_t replaced = diagonal + (from[i] == to[j] ? 0 : 1);
      diagonal = std::exchange(row[j + 1], std::min({replaced, row[j] + 1, row[j + 1] + 1}));
    }
  }
  return row.back();
}

std::vector<std::string> names_of(const std::vector<CommandInfo>& commands) {
  std::vector<std::string> names;
  for (const CommandInfo& command : commands) names.push_back(command.name);
  return names;
}

std::string complaint(const std::string& what, const std::string& word, const std::vector<std::string>& known) {
  std::string text = "'" + word + "' is no " + what;
  const auto nearest = std::min_element(known.begin(), known.end(), [&](const std::string& a, const std::string& b) {
    return distance(word, a) < distance(word, b);
  });
  if (nearest == known.end()) return text;
  if (distance(word, *nearest) <= std::max<std::size_t>(2, word.size() / 3))
    return text + "; did you mean '" + *nearest + "'?";
  return text + "; the nearest is '" + *nearest + "'";
}

}  // namespace

std::string wrong_word(const CommandInfo& root, const std::vector<std::string>& words) {
  std::vector<const CommandInfo*> path{&root};
  const auto option_named = [&path](const std::string& name) -> const OptionInfo* {
    for (const CommandInfo* command : path) {
      for (const OptionInfo& option : command->options)
        if (std::find(option.names.begin(), option.names.end(), name) != option.names.end()) return &option;
    }
    return nullptr;
  };
  const auto is_command = [&path](const std::string& word) {
    const auto names = names_of(path.back()->commands);
    return std::find(names.begin(), names.end(), word) != names.end();
  };
  for (std::size_t i = 0; i < words.size(); ++i) {
    const std::string& word = words[i];
    if (word == "--") return "";
    if (word.starts_with("--")) {
      const std::string name = word.substr(0, word.find('='));
      const OptionInfo* option = option_named(name);
      if (option == nullptr) {
        std::vector<std::string> known;
        for (const CommandInfo* command : path)
          for (const OptionInfo& other : command->options)
            if (!other.positional) known.insert(known.end(), other.names.begin(), other.names.end());
        return complaint("option of " + (path.size() > 1 ? "'" + path.back()->name + "'" : root.name), name, known);
      }
      const bool no_value = option->optional_value && i + 1 < words.size() && is_command(words[i + 1]);
      if (!option->value.empty() && name == word && !no_value) ++i;
      continue;
    }
    if (word.starts_with("-") && word.size() > 1) {
      const OptionInfo* option = option_named(word.substr(0, 2));
      if (option != nullptr && !option->value.empty() && word.size() == 2) ++i;
      continue;
    }
    const std::vector<CommandInfo>& commands = path.back()->commands;
    if (commands.empty()) return "";  // positional arguments, which the parser looks at
    const auto found =
        std::find_if(commands.begin(), commands.end(), [&](const auto& one) { return one.name == word; });
    if (found == commands.end())
      return complaint("command of " + (path.size() > 1 ? "'" + path.back()->name + "'" : root.name), word,
                       names_of(commands));
    path.push_back(&*found);
  }
  return "";
}

}  // namespace te
