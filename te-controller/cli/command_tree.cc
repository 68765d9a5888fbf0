// SPDX-License-Identifier: Apache-2.0
#include "te-controller/cli/command_tree.h"

#include <CLI/CLI.hpp>
#include <sstream>

namespace te {
namespace {

/// "TEXT:{text,json}" is a value called TEXT, one of text and json.
void read_type(const std::string& type, OptionInfo& option) {
  option.value = type.substr(0, type.find(':'));
  const std::size_t open = type.find('{');
  const std::size_t close = type.find('}');
  if (open == std::string::npos || close == std::string::npos || close < open) return;
  std::istringstream choices(type.substr(open + 1, close - open - 1));
  for (std::string choice; std::getline(choices, choice, ',');) option.choices.push_back(choice);
}

OptionInfo describe_option(const CLI::Option& option) {
  OptionInfo info;
  info.help = option.get_description();
  info.required = option.get_required();
  info.positional = option.get_positional();
  info.optional_value = option.get_items_expected_min() == 0;
  if (option.get_items_expected_max() > 0) read_type(option.get_type_name(), info);
  if (info.positional) {
    info.names = {option.get_name(true, false)};
    return info;
  }
  for (const std::string& name : option.get_snames()) info.names.push_back("-" + name);
  for (const std::string& name : option.get_lnames()) info.names.push_back("--" + name);
  return info;
}

}  // namespace

CommandInfo describe(const CLI::App& app) {
  CommandInfo info{app.get_name(), app.get_description(), app.get_footer(), {}, {}};
  for (const CLI::Option* option : app.get_options(std::function<bool(const CLI::Option*)>())) {
    const bool told_at_the_top = option == app.get_help_ptr() && app.get_parent() != nullptr;
    if (!option->get_group().empty() && !told_at_the_top) info.options.push_back(describe_option(*option));
  }
  for (const CLI::App* command : app.get_subcommands(std::function<bool(const CLI::App*)>()))
    if (!command->get_group().empty()) info.commands.push_back(describe(*command));
  return info;
}

}  // namespace te
