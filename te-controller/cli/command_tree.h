// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <string>
#include <vector>

namespace CLI {
class App;
}

namespace te {

struct OptionInfo {
  std::vector<std::string> names;  ///< "-o", "--output"; of a positional argument its one name
  std::string value;               ///< what its value is called; empty: it takes none
  std::vector<std::string> choices;
  std::string help;
  bool optional_value = false;
  bool positional = false;
  bool required = false;
};

/// What a program understands: what completion, the manual page and suggestions are made from.
struct CommandInfo {
  std::string name;
  std::string help;
  std::string footer;
  std::vector<OptionInfo> options;
  std::vector<CommandInfo> commands;
};

/// Without what is hidden (of group "").
[[nodiscard]] CommandInfo describe(const CLI::App& app);

/// The first word of a command line that names no command or option of ours, as a message with the nearest one that
/// does; empty: every word is known. Without the program's name.
[[nodiscard]] std::string wrong_word(const CommandInfo& root, const std::vector<std::string>& words);
/// A script for bash, or for zsh.
[[nodiscard]] std::string bash_completion(const CommandInfo& root);
[[nodiscard]] std::string zsh_completion(const CommandInfo& root);
/// A manual page of section 1 in roff. `version` stands at its foot.
[[nodiscard]] std::string manual_page(const CommandInfo& root, const std::string& version);

}  // namespace te
