// SPDX-License-Identifier: Apache-2.0
#include "lab/fault_commands.h"

#include <cstdint>
#include <cstdio>
#include <memory>

#include "common/base/units.h"
#include "lab/faults.h"
#include "lab/state.h"
#include "lab/switch_control.h"

namespace te::lab {
namespace {

struct Flags {
  std::string id;
  std::string place;  ///< NODE:PORT, or a switch
  std::string format = "text";
  std::string loss;
  std::string rate;
  std::string mode;
};

int report(const Result<void>& done) {
  if (done) return 0;
  std::fprintf(stderr, "te-lab: %s\n", done.error().message.c_str());
  return 1;
}

/// Prints {"KEY": TIME} when JSON was asked for, nothing else.
int report_time(const Flags& flags, const char* key, const Result<std::int64_t>& time_ns) {
  if (!time_ns) return report(time_ns.error());
  if (flags.format == "json") std::printf("{\"%s\": %lld}\n", key, static_cast<long long>(*time_ns));
  return 0;
}

int fail_or_restore(const Flags& flags, bool is_fail) {
  const auto id = choose_lab(flags.id);
  if (!id) return report(id.error());
  if (is_fail) return report_time(flags, "cut_ns", fail_cable(*id, flags.place));
  return report_time(flags, "restored_ns", restore_cable(*id, flags.place));
}

Result<Degradation> degradation_of(const Flags& flags) {
  Degradation degradation;
  if (flags.loss.empty() && flags.rate.empty()) return Error{"give --loss, --rate or both"};
  if (!flags.loss.empty()) {
    auto loss = parse_percent(flags.loss);
    if (!loss) return std::move(loss).error();
    degradation.loss = *loss;
  }
  if (!flags.rate.empty()) {
    auto rate_bps = parse_rate_bps(flags.rate);
    if (!rate_bps) return std::move(rate_bps).error();
    degradation.rate_bps = *rate_bps;
  }
  return degradation;
}

int degrade(const Flags& flags) {
  const auto id = choose_lab(flags.id);
  if (!id) return report(id.error());
  const auto degradation = degradation_of(flags);
  if (!degradation) return report(degradation.error());
  return report(degrade_port(*id, flags.place, *degradation));
}

int change_switch(const Flags& flags) {
  const auto id = choose_lab(flags.id);
  if (!id) return report(id.error());
  const auto mode = parse_mode(flags.mode);
  if (!mode) return report(mode.error());
  return report(set_switch_mode(*id, flags.place, *mode));
}

}  // namespace

void add_fault_commands(CLI::App& app, std::function<int()>& action) {
  const auto flags = std::make_shared<Flags>();
  const auto add = [&](const char* name, const char* text, const char* place, const char* place_text,
                       std::function<int()> run) {
    CLI::App* command = app.add_subcommand(name, text);
    command->add_option("--id", flags->id, "The lab (default: the only one)");
    command->add_option(place, flags->place, place_text)->required();
    command->callback([&action, run = std::move(run)] { action = run; });
    return command;
  };
  const auto add_format = [&](CLI::App* command, const char* text) {
    command->add_option("-o,--output", flags->format, text)->check(CLI::IsMember({"text", "json"}));
  };
  constexpr const char* kEitherEnd = "Either end of the cable, NODE:PORT, as in leaf1:spine2 or h1:eth0";
  add_format(add("fail", "Cut a cable: both its ends lose their carrier", "port", kEitherEnd,
                 [flags] { return fail_or_restore(*flags, true); }),
             "json: print the time of the cut, CLOCK_MONOTONIC");
  add_format(add("restore", "Make a cut or degraded cable as new", "port", kEitherEnd,
                 [flags] { return fail_or_restore(*flags, false); }),
             "json: print the time at which both ends had their carrier, CLOCK_MONOTONIC");
  CLI::App* worse = add("degrade", "Worsen the direction that a port sends; restore undoes it", "port",
                        "The port that sends, NODE:PORT", [flags] { return degrade(*flags); });
  worse->add_option("--loss", flags->loss, "Share of packets lost at random, as in 1%");
  worse->add_option("--rate", flags->rate, "Another rate, at most the lab's, as in 10mbit");
  CLI::App* change = add("switch", "Let a switch forward or answer as other switches do", "node", "leaf1, spine1, ...",
                         [flags] { return change_switch(*flags); });
  change->add_option("--mode", flags->mode, "normal, qpn-hash, spray, loopback-answers or silent")
      ->required()
      ->check(CLI::IsMember(mode_names()));
}

}  // namespace te::lab
