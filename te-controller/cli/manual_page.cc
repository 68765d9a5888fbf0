// SPDX-License-Identifier: Apache-2.0
#include <algorithm>
#include <cctype>
#include <sstream>

#include "te-controller/cli/command_tree.h"

namespace te {
namespace {

/// Text as roff shows it unchanged.
std::string escaped(const std::string& text) {
  std::string roff;
  bool line_begins = true;
  for (const char letter : text) {
    if (line_begins && (letter == '.' || letter == '\'')) roff += "\\&";
    line_begins = letter == '\n';
    if (letter == '\\') {
      roff += "\\e";
    } else if (letter == '-') {
      roff += "\\-";
    } else {
      roff.push_back(letter);
    }
  }
  return roff;
}

void add_options(const CommandInfo& command, std::string& page) {
  for (const OptionInfo& option : command.options) {
    std::string names;
    for (const std::string& name : option.names) names += (names.empty() ? "\\fB" : "\\fR, \\fB") + escaped(name);
    if (!option.positional && !option.value.empty()) names += "\\fR \\fI" + escaped(option.value);
    page += ".TP\n" + names + "\\fR\n" + escaped(option.help.empty() ? "(no description)" : option.help) + "\n";
  }
}

std::string usage(const CommandInfo& command) {
  std::string words;
  for (const OptionInfo& option : command.options)
    if (option.positional) words += " \\fI" + escaped(option.names.front()) + "\\fR";
  return words;
}

void add_commands(const CommandInfo& parent, const std::string& path, std::string& page) {
  for (const CommandInfo& command : parent.commands) {
    const std::string name = path.empty() ? command.name : path + " " + command.name;
    if (command.commands.empty()) {
      page += ".SS " + escaped(name) + usage(command) + "\n" + escaped(command.help) + ".\n";
      add_options(command, page);
    }
    add_commands(command, name, page);
  }
}

}  // namespace

std::string manual_page(const CommandInfo& root, const std::string& version) {
  std::string title = root.name;
  std::transform(title.begin(), title.end(), title.begin(),
                 [](unsigned char letter) { return static_cast<char>(std::toupper(letter)); });
  const std::string first_line = root.help.substr(0, root.help.find('\n'));
  std::string page = ".TH " + title + " 1 \"\" \"roce-te " + version + "\" \"roce-te\"\n.SH NAME\n" +
                     escaped(root.name) + " \\- " + escaped(first_line) + "\n.SH SYNOPSIS\n.B " + escaped(root.name) +
                     "\n[\\fIOPTIONS\\fR]" + (root.commands.empty() ? "" : " \\fICOMMAND\\fR ...") + "\n";
  if (first_line != root.help) page += ".SH DESCRIPTION\n" + escaped(root.help) + "\n";
  page += ".SH OPTIONS\n";
  if (!root.commands.empty()) page += "They stand before or after the command.\n";
  add_options(root, page);
  if (!root.commands.empty()) page += ".SH COMMANDS\n";
  add_commands(root, "", page);
  page += ".SH NOTES\n.nf\n" + escaped(root.footer) + "\n.fi\n";
  return page;
}

}  // namespace te
