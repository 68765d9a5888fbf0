// SPDX-License-Identifier: Apache-2.0
#include "te-controller/cli/file_checks.h"

#include <google/protobuf/struct.pb.h>
#include <google/protobuf/util/json_util.h>

#include "common/os/file.h"
#include "te-controller/app/preflight.h"
#include "te-controller/cli/call.h"
#include "topology/reader.h"

namespace te {
namespace {

/// As JSON; `status` when there are any.
int show_faults(const std::vector<std::string>& all, int status) {
  google::protobuf::Struct found;
  (*found.mutable_fields())["valid"].set_bool_value(all.empty());
  auto& faults = *(*found.mutable_fields())["faults"].mutable_list_value();
  for (const std::string& fault : all) faults.add_values()->set_string_value(fault);
  std::string text;
  (void)google::protobuf::util::MessageToJsonString(found, &text);
  const int shown = show(text + "\n");
  return all.empty() ? shown : status;
}

}  // namespace

int validate_topology(const std::string& path, bool json) {
  const auto text = read_file(path);
  const auto fabric = text ? read_fabric_yaml(*text, path) : Result<Fabric>(text.error());
  if (!fabric && json) return show_faults({fabric.error().message}, kRefused);
  if (!fabric) return complain(fabric.error().message, kRefused);
  std::size_t hosts = 0;
  for (const Node& node : fabric->nodes()) hosts += node.is_host() ? 1U : 0U;
  const std::string host_count = std::to_string(hosts);
  const std::string switch_count = std::to_string(fabric->nodes().size() - hosts);
  const std::string link_count = std::to_string(fabric->links().size());
  if (json) {
    return show("{\"valid\": true, \"hosts\": " + host_count + ", \"switches\": " + switch_count +
                ", \"links\": " + link_count + "}\n");
  }
  return show(path + ": valid; " + host_count + " hosts, " + switch_count + " switches, " + link_count +
              " links (one direction each)\n");
}

int check_controller_config(const std::string& path, bool json) {
  const ConfigReport report = check_config(path);
  const bool valid = report.faults.empty();
  if (json) return show_faults(report.faults, kUsage);
  for (const std::string& fault : report.faults) (void)complain(fault, kUsage);
  if (!valid) return kUsage;
  return show(path + ": no fault found; " + std::to_string(report.nodes) + " nodes, " + std::to_string(report.links) +
              " links\n");
}

}  // namespace te
