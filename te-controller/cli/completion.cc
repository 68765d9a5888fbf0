// SPDX-License-Identifier: Apache-2.0
#include <set>

#include "te-controller/cli/command_tree.h"

namespace te {
namespace {

bool is_file(const std::string& value) { return value == "FILE" || value == "DIR"; }

/// Options whose value can be offered: the case of a shell script for each.
void add_values(const CommandInfo& command, std::set<std::string>& cases) {
  for (const OptionInfo& option : command.options) {
    if (option.positional || option.value.empty()) continue;
    std::string words;
    for (const std::string& choice : option.choices) words += (words.empty() ? "" : " ") + choice;
    std::string names;
    for (const std::string& name : option.names) names += (names.empty() ? "" : "|") + name;
    cases.insert("    " + names + ") COMPREPLY=($(compgen " + (is_file(option.value) ? "-f" : "-W \"" + words + "\"") +
                 " -- \"$word\")); return;;\n");
  }
  for (const CommandInfo& inner : command.commands) add_values(inner, cases);
}

void add_paths(const CommandInfo& command, const std::string& path, std::string& paths, std::string& cases,
               const std::string& global_options) {
  std::string words;
  std::string files;
  for (const CommandInfo& inner : command.commands) words += inner.name + " ";
  for (const OptionInfo& option : command.options) {
    if (option.positional && is_file(option.value)) files = " -f";
    for (const std::string& choice : option.positional ? option.choices : option.names) words += choice + " ";
  }
  cases +=
      "    '" + path + "') COMPREPLY=($(compgen" + files + " -W \"" + words + global_options + "\" -- \"$word\"));;\n";
  for (const CommandInfo& inner : command.commands) {
    const std::string below = path + " " + inner.name;
    paths += (paths.empty() ? "'" : "|'") + below + "'";
    add_paths(inner, below, paths, cases, global_options);
  }
}

}  // namespace

std::string bash_completion(const CommandInfo& root) {
  std::set<std::string> values;
  add_values(root, values);
  std::string global_options;
  for (const OptionInfo& option : root.options)
    if (!option.names.empty()) global_options += (global_options.empty() ? "" : " ") + option.names.back();
  std::string paths;
  std::string cases;
  CommandInfo commands_only = root;
  commands_only.options.clear();
  add_paths(commands_only, root.name, paths, cases, global_options);
  std::string script = "# Completion of " + root.name + " for bash. Load it with: . <(" + root.name +
                       " completion bash)\n_" + root.name +
                       "() {\n  local word=${COMP_WORDS[COMP_CWORD]} path=" + root.name +
                       " i\n  case \"${COMP_WORDS[COMP_CWORD-1]}\" in\n";
  for (const std::string& one : values) script += one;
  script += "  esac\n  for ((i = 1; i < COMP_CWORD; i++)); do\n    case \"$path ${COMP_WORDS[i]}\" in\n      " + paths +
            ") path+=\" ${COMP_WORDS[i]}\";;\n    esac\n  done\n  case \"$path\" in\n" + cases +
            "  esac\n}\ncomplete -F _" + root.name + " " + root.name + "\n";
  return script;
}

std::string zsh_completion(const CommandInfo& root) {
  return "# Completion of " + root.name + " for zsh. Load it with: . <(" + root.name +
         " completion zsh)\nautoload -U +X compinit && compinit\nautoload -U +X bashcompinit && bashcompinit\n" +
         bash_completion(root);
}

}  // namespace te
