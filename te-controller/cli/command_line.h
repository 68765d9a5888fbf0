// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <functional>
#include <string>
#include <vector>

#include "te-controller/cli/call.h"

namespace CLI {
class App;
}

namespace te {

/// Declares tectl's subcommands on an App, which outlives it; each sets what run_action() does.
class CommandLine {
 public:
  explicit CommandLine(CLI::App& app);
  CommandLine(const CommandLine&) = delete;
  CommandLine& operator=(const CommandLine&) = delete;

  /// After the App has parsed; an exit status.
  int run_action();

 private:
  CLI::App* call(CLI::App& parent, const char* name, const char* help, std::function<Call()> make);
  /// One that needs no controller, or talks to it in its own way.
  CLI::App* local(CLI::App& parent, const char* name, const char* help, std::function<int()> run);
  CLI::App* add(CLI::App& parent, const char* name, const char* help, std::function<int()> run);
  CLI::App* group(const char* name, const char* help);
  void add_connection_options();
  void add_views();
  void add_switches();
  void add_overrides();
  [[nodiscard]] Call override_call(const std::string& path, const char* target) const;
  void add_certs();
  void add_enrol();
  void add_files();
  void add_scripts();

  CLI::App* app_;
  CallOptions options_;
  std::string output_ = "text";
  std::string node_;
  std::string source_;
  std::string destination_;
  std::string flow_;
  std::string file_;
  int limit_ = 50;
  bool follow_ = false;
  std::string authority_ = "/etc/roce-te/ca";
  std::string name_;
  std::string out_ = ".";
  std::string token_;
  std::string lifetime_ = "1h";
  std::string reason_;
  bool force_ = false;
  std::vector<std::string> hosts_;
  int days_ = 365;
  int authority_days_ = 3650;
  std::string shell_;
  std::function<int()> action_;
};

}  // namespace te
