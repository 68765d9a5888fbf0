// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <string>
#include <vector>

#include "common/base/result.h"
#include "lab/fabric.h"
#include "lab/process.h"

namespace te::lab {

inline constexpr const char* kRunDirectory = "/run/te-lab";

/// Where a lab keeps its files: topology.yaml, spec.json, lab.json, qp/, stats/, pids/, bpffs/, degraded/, modes/.
[[nodiscard]] std::string state_directory(const std::string& id);
/// Ids of all labs that have a state directory, sorted.
[[nodiscard]] std::vector<std::string> lab_ids();
/// Takes `id` for a new lab (the first free of lab1, lab2, ... when empty) by making its directory.
/// An Error when it is in use.
Result<std::string> claim_id(const std::string& id);
/// `id`, or the only lab there is when empty. An Error lists what there is.
Result<std::string> choose_lab(const std::string& id);

/// spec.json: what te-lab reads back.
[[nodiscard]] std::string spec_json(const Spec& spec);
/// lab.json: spec, nodes and links for other programs.
[[nodiscard]] std::string lab_json(const Fabric& fabric);
Result<Fabric> read_lab(const std::string& id);
/// topology.yaml: what an operator would write, no more.
[[nodiscard]] std::string topology_yaml(const Fabric& fabric);

/// Notes a process that `down` must end.
Result<void> note_process(const std::string& id, const std::string& name, const ProcessId& process);
void forget_process(const std::string& id, const std::string& name);
/// Noted processes that are still the ones noted.
[[nodiscard]] std::vector<ProcessId> noted_processes(const std::string& id);

}  // namespace te::lab
