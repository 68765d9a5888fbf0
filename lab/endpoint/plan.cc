// SPDX-License-Identifier: Apache-2.0
#include "lab/endpoint/plan.h"

#include <fmt/format.h>

#include <utility>

#include "common/os/file.h"
#include "common/yaml/yaml_reader.h"

namespace te::lab {
namespace {

/// Reads one value after another and remembers the first failure.
class FieldReader {
 public:
  explicit FieldReader(const YamlReader& reader) : reader_(reader) {}
  template <class Number>
  void number(const char* key, Number& field) {
    auto value = reader_.integer_or(key, 0, 0, INT64_MAX);
    if (value) {
      field = static_cast<Number>(*value);
    } else {
      fail(std::move(value).error());
    }
  }
  void text(const char* key, std::string& field) {
    auto value = reader_.string(key);
    if (value) {
      field = std::move(*value);
    } else {
      fail(std::move(value).error());
    }
  }
  void flag(const char* key, bool& field) {
    auto value = reader_.boolean_or(key, false);
    if (value) {
      field = *value;
    } else {
      fail(std::move(value).error());
    }
  }
  void address(const char* key, IpAddress& field) {
    std::string written;
    text(key, written);
    auto value = IpAddress::parse(written);
    if (value) {
      field = *value;
    } else {
      fail(std::move(value).error());
    }
  }
  Result<void> result() const {
    if (failed_.message.empty()) return {};
    return failed_;
  }

 private:
  void fail(Error error) {
    if (failed_.message.empty()) failed_ = std::move(error);
  }
  const YamlReader& reader_;
  Error failed_;
};

Result<std::vector<NicPlan>> read_nics(const YamlReader& root) {
  auto entries = root.list("nics");
  if (!entries) return std::move(entries).error();
  std::vector<NicPlan> nics;
  for (const YamlReader& entry : *entries) {
    NicPlan nic;
    FieldReader fields(entry);
    fields.text("interface", nic.interface);
    fields.address("address", nic.address);
    auto read = fields.result();
    if (!read) return read.error();
    nics.push_back(std::move(nic));
  }
  return nics;
}

Result<QpPlan> read_qp(const YamlReader& entry) {
  QpPlan qp;
  FieldReader fields(entry);
  fields.number("nic", qp.nic);
  fields.number("qpn", qp.qpn);
  fields.number("remote_qpn", qp.remote_qpn);
  fields.text("peer", qp.peer);
  fields.address("remote", qp.remote);
  fields.number("send_psn", qp.send_psn);
  fields.number("receive_psn", qp.receive_psn);
  fields.number("flow_label", qp.flow_label);
  fields.flag("sends", qp.sends);
  auto read = fields.result();
  if (!read) return read.error();
  return qp;
}

}  // namespace

std::string plan_json(const EndpointPlan& plan) {
  std::string text = fmt::format(
      R"({{"host": "{}", "rate_bps": {:.0f}, "path_mtu": {}, "verb": "{}", )"
      R"("message_bytes": {}, "window_packets": {}, "ack_every": {}, "timeout_ms": {}, "retries": {}, )"
      R"("qp_table_path": "{}", "stats_path": "{}", "nics": [)",
      plan.host, plan.rate_bps, plan.path_mtu, plan.verb == Verb::kSend ? "send" : "write", plan.message_bytes,
      plan.window_packets, plan.ack_every, plan.timeout_ms, plan.retries, plan.qp_table_path, plan.stats_path);
  const char* comma = "";
  for (const NicPlan& nic : plan.nics) {
    text += fmt::format(R"({}{{"interface": "{}", "address": "{}"}})", comma, nic.interface, nic.address.to_string());
    comma = ", ";
  }
  text += "], \"qps\": [";
  comma = "\n";
  for (const QpPlan& qp : plan.qps) {
    text += fmt::format(R"({}{{"nic": {}, "qpn": {}, "remote_qpn": {}, "peer": "{}", "remote": "{}", "send_psn": {}, )"
                        R"("receive_psn": {}, "flow_label": {}, "sends": {}}})",
                        comma, qp.nic, qp.qpn, qp.remote_qpn, qp.peer, qp.remote.to_string(), qp.send_psn,
                        qp.receive_psn, qp.flow_label, qp.sends);
    comma = ",\n";
  }
  return text + "]}\n";
}

Result<EndpointPlan> read_plan(const std::string& path) {
  auto text = read_file(path);
  if (!text) return std::move(text).error();
  auto root = YamlReader::parse(*text, path);
  if (!root) return std::move(root).error();
  EndpointPlan plan;
  std::string verb;
  std::uint64_t rate_bps = 0;
  FieldReader fields(*root);
  fields.text("host", plan.host);
  fields.number("rate_bps", rate_bps);
  fields.number("path_mtu", plan.path_mtu);
  fields.text("verb", verb);
  fields.number("message_bytes", plan.message_bytes);
  fields.number("window_packets", plan.window_packets);
  fields.number("ack_every", plan.ack_every);
  fields.number("timeout_ms", plan.timeout_ms);
  fields.number("retries", plan.retries);
  fields.text("qp_table_path", plan.qp_table_path);
  fields.text("stats_path", plan.stats_path);
  auto read = fields.result();
  if (!read) return read.error();
  plan.rate_bps = static_cast<double>(rate_bps);
  plan.verb = verb == "send" ? Verb::kSend : Verb::kWrite;
  auto nics = read_nics(*root);
  if (!nics) return std::move(nics).error();
  plan.nics = std::move(*nics);
  auto entries = root->list("qps");
  if (!entries) return std::move(entries).error();
  for (const YamlReader& entry : *entries) {
    auto qp = read_qp(entry);
    if (!qp) return std::move(qp).error();
    if (qp->nic >= plan.nics.size()) return entry.error("there is no such NIC");
    plan.qps.push_back(std::move(*qp));
  }
  return plan;
}

}  // namespace te::lab
