// SPDX-License-Identifier: Apache-2.0
#include "lab/switch_mode.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <iterator>
#include <utility>

namespace te::lab {
namespace {

constexpr std::array<std::pair<SwitchMode, const char*>, 5> kNames{{
    {SwitchMode::kNormal, "normal"},
    {SwitchMode::kQpnHash, "qpn-hash"},
    {SwitchMode::kSpray, "spray"},
    {SwitchMode::kLoopbackAnswers, "loopback-answers"},
    {SwitchMode::kSilent, "silent"},
}};

/// Routing tables and the preferences of their rules: one for the switch's own packets, one for each equal-cost port.
constexpr std::size_t kOwnTable = 1000;
constexpr std::size_t kFirstPortTable = 1001;

using Out = std::back_insert_iterator<std::string>;

/// Routes for what the switch itself sends, from its loopback address; the main table stays as it is.
std::string own_routes(const Fabric& fabric, std::size_t node) {
  std::string text;
  const Out out(text);
  const std::string tail = fmt::format("src {} table {}", loopback_address(fabric, node), kOwnTable);
  const auto neighbour = [&](const Port& port, const Port& peer) {
    fmt::format_to(out, "route add {}/{} dev {} {}\n", peer.address.to_string(), fabric.is_v6() ? 128 : 32, port.name,
                   tail);
  };
  for (const Link& link : fabric.links) {
    if (link.a.node == node) neighbour(link.a, link.b);
    if (link.b.node == node) neighbour(link.b, link.a);
  }
  for (const Route& route : routes_of(fabric, node)) {
    fmt::format_to(out, "route add {} {}", route.prefix, tail);
    for (const auto& [gateway, interface] : route.next_hops) {
      fmt::format_to(out, " nexthop via {} dev {}", gateway, interface);
    }
    text += '\n';
  }
  return text;
}

/// One table for each equal-cost port, used by packets with its mark. Without carrier its routes are skipped, and the
/// main table decides.
std::string port_routes(const Fabric& fabric, std::size_t node) {
  std::string text;
  const Out out(text);
  for (const Route& route : routes_of(fabric, node)) {
    for (std::size_t hop = 0; hop < route.next_hops.size(); ++hop) {
      const auto& [gateway, interface] = route.next_hops[hop];
      fmt::format_to(out, "route add {} via {} dev {} table {}\n", route.prefix, gateway, interface,
                     kFirstPortTable + hop);
    }
  }
  for (std::size_t hop = 0; hop < equal_cost_ports(fabric, node); ++hop) {
    fmt::format_to(out, "rule add pref {0} fwmark {1} lookup {0}\n", kFirstPortTable + hop, hop + 1);
  }
  return text;
}

std::string remove_table(std::size_t table) { return fmt::format("rule del pref {0}\nroute flush table {0}\n", table); }

}  // namespace

const char* mode_name(SwitchMode mode) {
  const auto* const found = std::ranges::find(kNames, mode, &std::pair<SwitchMode, const char*>::first);
  return found->second;
}

Result<SwitchMode> parse_mode(std::string_view text) {
  std::string names;
  for (const auto& [mode, name] : kNames) {
    if (text == name) return mode;
    names += std::string(names.empty() ? "" : ", ") + name;
  }
  return Error{"there is no mode '" + std::string(text) + "'; there are " + names};
}

std::vector<std::string> mode_names() {
  std::vector<std::string> names;
  for (const auto& [mode, name] : kNames) names.emplace_back(name);
  return names;
}

bool chooses_ports(SwitchMode mode) { return mode == SwitchMode::kQpnHash || mode == SwitchMode::kSpray; }

std::size_t equal_cost_ports(const Fabric& fabric, std::size_t node) {
  std::size_t most = 1;
  for (const Route& route : routes_of(fabric, node)) most = std::max(most, route.next_hops.size());
  return most;
}

std::string loopback_address(const Fabric& fabric, std::size_t node) {
  const std::size_t number = node - static_cast<std::size_t>(fabric.spec.hosts) + 1;
  return fabric.is_v6() ? fmt::format("fd00:fe::{:x}", number)
                        : fmt::format("10.254.{}.{}", number >> 8, number & 0xFF);
}

std::string mode_batch(const Fabric& fabric, std::size_t node, SwitchMode mode) {
  if (chooses_ports(mode)) return port_routes(fabric, node);
  if (mode != SwitchMode::kLoopbackAnswers) return "";
  // Without nodad an IPv6 address is of use only once the kernel has looked at it, some time later.
  return fmt::format("addr add {}/{} dev lo{}\n", loopback_address(fabric, node), fabric.is_v6() ? 128 : 32,
                     fabric.is_v6() ? " nodad" : "") +
         own_routes(fabric, node) + fmt::format("rule add pref {0} iif lo lookup {0}\n", kOwnTable);
}

std::string mode_undo_batch(const Fabric& fabric, std::size_t node, SwitchMode mode) {
  std::string text;
  if (chooses_ports(mode)) {
    for (std::size_t hop = 0; hop < equal_cost_ports(fabric, node); ++hop) text += remove_table(kFirstPortTable + hop);
  } else if (mode == SwitchMode::kLoopbackAnswers) {
    text = remove_table(kOwnTable) +
           fmt::format("addr del {}/{} dev lo\n", loopback_address(fabric, node), fabric.is_v6() ? 128 : 32);
  }
  return text;
}

std::vector<Sysctl> mode_sysctls(SwitchMode mode) {
  return {{"net/ipv4/icmp_errors_use_inbound_ifaddr", mode == SwitchMode::kLoopbackAnswers ? "0" : "1"}};
}

}  // namespace te::lab
