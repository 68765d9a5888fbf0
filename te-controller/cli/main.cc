// SPDX-License-Identifier: Apache-2.0
#include <CLI/CLI.hpp>
#include <csignal>
#include <string>
#include <vector>

#include "te-controller/cli/command_line.h"
#include "te-controller/cli/command_tree.h"

namespace te {
namespace {

int finish(int status) { return status == kNobodyReads ? kOk : status; }

/// What the parser found, said of the word that is wrong where there is one.
int usage_error(const CLI::App& app, const CLI::ParseError& problem, const std::vector<std::string>& words) {
  const std::string wrong = wrong_word(describe(app), words);
  if (wrong.empty()) return app.exit(problem), kUsage;
  return complain(wrong + "\n'tectl --help' lists all", kUsage);
}

}  // namespace
}  // namespace te

int main(int argc, char** argv) {
  CLI::App app("Asks and commands te-controller", "tectl");
  std::signal(SIGPIPE, SIG_IGN);  // a reader that is gone is seen as an error of the write
  te::CommandLine line(app);
  try {
    app.parse(argc, argv);
  } catch (const CLI::Success& asked) {  // --help, --version
    app.exit(asked);
    return te::finish(te::show(""));
  } catch (const CLI::ParseError& problem) {
    return te::usage_error(app, problem, {argv + 1, argv + argc});
  }
  return te::finish(line.run_action());
}
