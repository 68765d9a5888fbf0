// SPDX-License-Identifier: Apache-2.0
#include "lab/status.h"

#include <fmt/format.h>

#include <iterator>

#include "common/base/units.h"
#include "lab/faults.h"
#include "lab/netns.h"
#include "lab/state.h"
#include "lab/switch_control.h"

namespace te::lab {
namespace {

using Out = std::back_insert_iterator<std::string>;
using Modes = std::vector<std::pair<std::string, SwitchMode>>;

/// `as_text` of each element, with `separator` between them.
template <class List, class AsText>
std::string joined(const List& list, const char* separator, AsText as_text) {
  std::string text;
  for (const auto& element : list) text += (text.empty() ? "" : separator) + as_text(element);
  return text;
}

std::string faults_json(const Fabric& fabric, const Faults& faults) {
  const auto cut = [&](std::size_t link) {
    return fmt::format(R"(["{}", "{}"])", end_name(fabric, {link, true}), end_name(fabric, {link, false}));
  };
  const auto degraded = [&](const DegradedPort& port) {
    const double rate_bps = port.degradation.rate_bps > 0 ? port.degradation.rate_bps : fabric.spec.rate_bps;
    return fmt::format(R"({{"port": "{}", "loss": {}, "rate_bps": {:.0f}, "passed_packets": {}, "lost_packets": {}}})",
                       end_name(fabric, port.end), port.degradation.loss, rate_bps, port.counts.passed_packets,
                       port.counts.lost_packets);
  };
  return fmt::format(R"("cut_cables": [{}], "degraded_ports": [{}])", joined(faults.cut, ", ", cut),
                     joined(faults.degraded, ", ", degraded));
}

std::string modes_json(const Modes& modes) {
  return fmt::format(R"("switch_modes": {{{}}})", joined(modes, ", ", [](const auto& mode) {
                       return fmt::format(R"("{}": "{}")", mode.first, mode_name(mode.second));
                     }));
}

std::string faults_text(const Fabric& fabric, const Faults& faults, const Modes& modes) {
  std::string text;
  const Out out(text);
  for (const std::size_t link : faults.cut) {
    fmt::format_to(out, "\n  cut: {} - {}", end_name(fabric, {link, true}), end_name(fabric, {link, false}));
  }
  for (const DegradedPort& port : faults.degraded) {
    fmt::format_to(out, "\n  degraded: {} sends", end_name(fabric, port.end));
    if (port.degradation.rate_bps > 0) fmt::format_to(out, " at {}", format_rate_bps(port.degradation.rate_bps));
    if (port.degradation.loss > 0) {
      fmt::format_to(out, " with {:.6g} % of the packets lost: {} of {}", 100 * port.degradation.loss,
                     port.counts.lost_packets, port.counts.lost_packets + port.counts.passed_packets);
    }
  }
  for (const auto& [node, mode] : modes) fmt::format_to(out, "\n  {} is in mode {}", node, mode_name(mode));
  return text;
}

}  // namespace

Result<std::string> describe(const std::string& id, bool as_json) {
  auto fabric = read_lab(id);
  if (!fabric) return std::move(fabric).error();
  const auto namespaces = netns_with_prefix(netns_prefix(id));
  const Spec& spec = fabric->spec;
  const auto expected = fabric->nodes.size() + 2 + (spec.nic_netns ? static_cast<std::size_t>(spec.hosts) : 0);
  const auto processes = processes_in(namespaces);
  const auto modes = read_switch_modes(id, *fabric);
  // A lab that is half built or half removed has no cables to look at.
  const auto faults = read_faults(id, *fabric);
  const bool is_known = modes.ok() && faults.ok();
  if (as_json) {
    const std::string wrong = is_known ? faults_json(*fabric, *faults) + ", " + modes_json(*modes)
                                       : R"("cut_cables": null, "degraded_ports": null, "switch_modes": null)";
    return fmt::format(
        R"({{"id": "{}", "directory": "{}", "hosts": {}, "nics": {}, "leaves": {}, "spines": {}, "rate_bps": {:.0f}, "mtu": {}, "seed": {}, "family": {}, "nic_netns": {}, "vlan": "{}", "namespaces": {}, "namespaces_expected": {}, "processes": {}, {}}})",
        id, state_directory(id), spec.hosts, spec.nics, spec.leaves, spec.spines, spec.rate_bps, spec.mtu, spec.seed,
        fabric->is_v6() ? 6 : 4, spec.nic_netns, format_vlans(spec.vlans), namespaces.size(), expected,
        processes.size(), wrong);
  }
  const std::string nics = (spec.nics == 1 ? "" : fmt::format(" of {} NICs", spec.nics)) +
                           (spec.nic_netns ? ", their NICs in namespaces of their own" : "") +
                           (spec.vlans.empty() ? "" : ", tagged VLAN " + format_vlans(spec.vlans));
  const std::string wrong =
      is_known ? faults_text(*fabric, *faults, *modes)
               : "\n  faults are not known: " + (modes ? faults.error().message : modes.error().message);
  return fmt::format(
      "{}: {} hosts{}, {} leaves, {} spines, {} links of {}, MTU {}, IPv{}, seed {}; {} of {} namespaces, "
      "{} processes; files in {}{}",
      id, spec.hosts, nics, spec.leaves, spec.spines, fabric->links.size(), format_rate_bps(spec.rate_bps), spec.mtu,
      fabric->is_v6() ? 6 : 4, spec.seed, namespaces.size(), expected, processes.size(), state_directory(id), wrong);
}

}  // namespace te::lab
