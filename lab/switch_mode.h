// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "common/base/result.h"
#include "lab/commands.h"
#include "lab/fabric.h"

namespace te::lab {

enum class SwitchMode : std::uint8_t {
  kNormal,           ///< equal-cost ports by the five-tuple; expired packets answered from the inbound port's address
  kQpnHash,          ///< equal-cost ports by addresses and destination QPN
  kSpray,            ///< each packet takes a port of its own
  kLoopbackAnswers,  ///< expired packets answered from an address that no port has
  kSilent,           ///< expired packets not answered
};

[[nodiscard]] const char* mode_name(SwitchMode mode);
/// An Error lists the modes.
Result<SwitchMode> parse_mode(std::string_view text);
[[nodiscard]] std::vector<std::string> mode_names();
/// Whether the switch itself, not the kernel's hash, chooses among equal-cost ports.
[[nodiscard]] bool chooses_ports(SwitchMode mode);

/// Ports that share the load towards other leaves; 1 on a switch without a choice.
[[nodiscard]] std::size_t equal_cost_ports(const Fabric& fabric, std::size_t node);
/// The address from which a switch answers in mode loopback-answers.
[[nodiscard]] std::string loopback_address(const Fabric& fabric, std::size_t node);

/// Inputs of `ip -batch` (with the fabric's family, in the switch's namespace) that lead from normal to `mode` and
/// back.
[[nodiscard]] std::string mode_batch(const Fabric& fabric, std::size_t node, SwitchMode mode);
[[nodiscard]] std::string mode_undo_batch(const Fabric& fabric, std::size_t node, SwitchMode mode);
[[nodiscard]] std::vector<Sysctl> mode_sysctls(SwitchMode mode);

}  // namespace te::lab
