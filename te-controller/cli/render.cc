// SPDX-License-Identifier: Apache-2.0
#include "te-controller/cli/render.h"

#include <algorithm>
#include <array>
#include <cmath>
#include <cstdio>
#include <ctime>

#include "common/base/units.h"
#include "te-controller/cli/table.h"

namespace te {
namespace {

constexpr double kBusyShare = 0.9;      // of a link's capacity
constexpr std::size_t kPortsShown = 6;  // of those known for a path

std::string percent(double share) { return std::to_string(std::lround(share * 100)) + "%"; }

std::string join(const google::protobuf::RepeatedPtrField<std::string>& words, const char* between) {
  std::string joined;
  for (const std::string& word : words) joined += (joined.empty() ? "" : between) + word;
  return joined;
}

std::string hexadecimal(int number) {
  std::array<char, 16> text{};
  std::snprintf(text.data(), text.size(), "0x%x", static_cast<unsigned>(number));
  return text.data();
}

std::string local_time(double wall_s) {
  const auto whole = static_cast<std::time_t>(wall_s);
  std::tm broken{};
  localtime_r(&whole, &broken);
  std::array<char, 32> text{};
  const std::size_t length = std::strftime(text.data(), text.size(), "%m-%d %H:%M:%S", &broken);
  return {text.data(), length};
}

std::string path_of(const v1::FlowView& flow) { return flow.path().empty() ? "unknown" : join(flow.path(), " "); }

Tone tone_of_mode(const std::string& mode) {
  return mode == "act" ? Tone::kGood : mode == "paused" ? Tone::kWarning : Tone::kPlain;
}

Tone tone_of_move(const std::string& state) {
  if (state == "verified") return Tone::kGood;
  if (state == "rolled_back" || state == "failed") return Tone::kBad;
  return Tone::kPlain;
}

Tone tone_of_link(const v1::LinkView& link) {
  if (!link.takes_flows()) return Tone::kBad;
  return link.state() == "healthy" ? Tone::kGood : Tone::kFaint;
}

/// A drained link that is well reads "drained".
std::string state_of(const v1::LinkView& link) {
  const bool well = link.state() == "healthy" || link.state() == "unknown";
  return link.drained().empty() ? link.state() : well ? "drained" : link.state() + ", drained";
}

std::string evidence_of(const v1::LinkView& link) {
  return link.evidence() + (link.evidence().empty() || link.drained().empty() ? "" : "; ") + link.drained();
}

Tone tone_of_path(const std::string& state) {
  if (state == "reachable") return Tone::kGood;
  return state == "down" ? Tone::kBad : Tone::kWarning;
}

std::string line(const std::string& name, const std::string& value) {
  std::string text = name;
  text.append(name.size() < 10 ? 10 - name.size() : 1, ' ');
  return text + value + "\n";
}

std::string count(int number, const std::string& of) { return std::to_string(number) + " " + of; }

Table flow_table(const google::protobuf::RepeatedPtrField<v1::FlowView>& flows) {
  Table table({"FLOW", "FROM", "TO", ">QP", "KIND", ">PORT", "SET BY", ">RATE", ">GOODPUT", ">CE", "PATH"});
  const auto last_known = [](const v1::FlowView& flow, const std::string& figure) {
    return flow.stale() ? Cell{"was " + figure, Tone::kWarning} : Cell{figure};
  };
  for (const v1::FlowView& flow : flows) {
    const bool known = !flow.path().empty();
    table.add({{flow.id()},
               {flow.source_node().empty() ? flow.source() : flow.source_node()},
               {flow.destination_node().empty() ? flow.destination() : flow.destination_node()},
               {hexadecimal(flow.destination_qpn())},
               {flow.kind(), flow.kind() == "data" ? Tone::kPlain : Tone::kFaint},
               {std::to_string(flow.wire_port())},
               {flow.steered() ? "us" : flow.provenance(), flow.steered() ? Tone::kGood : Tone::kPlain},
               last_known(flow, format_rate_bps(flow.rate_bps())),
               last_known(flow, format_rate_bps(flow.payload_bps())),
               {percent(flow.ecn_ce_share())},
               {path_of(flow), known ? Tone::kPlain : Tone::kWarning}});
  }
  return table;
}

Table option_table(const google::protobuf::RepeatedPtrField<v1::PathView>& paths, int current) {
  Table table({"", "PATH", "STATE", ">CAPACITY", ">FULLEST LINK", "PORTS"});
  for (int i = 0; i < paths.size(); ++i) {
    const v1::PathView& path = paths[i];
    std::string ports;
    for (const int port : path.ports()) {
      if (ports.size() > kPortsShown * 6) {
        ports += " ...";
        break;
      }
      ports += (ports.empty() ? "" : " ") + std::to_string(port);
    }
    table.add({{i == current ? "*" : ""},
               {join(path.nodes(), " ")},
               {path.state(), tone_of_path(path.state())},
               {format_rate_bps(path.capacity_bps())},
               {count(path.elastic_flows(), path.elastic_flows() == 1 ? "flow" : "flows")},
               {ports}});
  }
  return table;
}

Table move_table(const google::protobuf::RepeatedPtrField<v1::MoveView>& moves) {
  Table table({">NO", "TIME", "FLOW", ">FROM", ">TO", "FROM PATH", "TO PATH", ">SLOWEST GAINS", "STATE"});
  for (const v1::MoveView& move : moves) {
    table.add({{move.number() > 0 ? std::to_string(move.number()) : "-"},
               {move.wall_s() > 0 ? local_time(move.wall_s()) : "-"},
               {move.flow()},
               {std::to_string(move.from_port())},
               {std::to_string(move.to_port())},
               {move.from_path()},
               {move.to_path()},
               {format_rate_bps(move.predicted_gain_bps())},
               {move.state(), tone_of_move(move.state())}});
    table.note("why: " + move.reason());
    if (!move.outcome().empty()) table.note("seen: " + move.outcome());
    if (!move.refuted_by().empty()) table.note("wrong if: " + move.refuted_by());
  }
  return table;
}

}  // namespace

std::string render(const v1::Status& status, bool colour) {
  std::string text = line("mode", in_tone(status.mode(), tone_of_mode(status.mode()), colour) + ", up " +
                                      format_duration_s(status.uptime_s()) + ", version " + status.version());
  text += line("fabric", count(status.nodes(), "nodes, ") + count(status.links(), "links (one direction each), from ") +
                             status.topology());
  const bool all_agents = status.agents_connected() == status.agents_expected();
  text += line("agents", in_tone(count(status.agents_connected(), "of ") + count(status.agents_expected(), "hosts"),
                                 all_agents ? Tone::kGood : Tone::kWarning, colour) +
                             " connected, " + count(status.switch_agents_connected(), "switches"));
  text += line("flows", count(status.flows(), "seen, ") + count(status.elastic_flows(), "carried data lately, ") +
                            count(status.flows_with_known_path(), "with known path, ") +
                            count(status.flows_steered(), "steered"));
  text += line("slowest", format_rate_bps(status.slowest_flow_bps()) + " measured, " +
                              format_rate_bps(status.predicted_slowest_flow_bps()) + " if the plan were carried out");
  text +=
      line("moves", count(status.moves_total(), "in the ledger, ") + count(status.rollbacks_total(), "rolled back"));
  text += line("probes", count(status.probes_sent(), "sent, ") + count(status.probes_lost(), "without an answer"));
  text += line("planning",
               count(status.plan_cycles(), "cycles, the last took ") + format_duration_s(status.last_plan_ms() / 1e3));
  for (const std::string& warning : status.warnings())
    text += line("warning", in_tone(warning, Tone::kWarning, colour));
  return text;
}

std::string render(const v1::NodeList& nodes, bool colour) {
  Table table({"NODE", "KIND", "AGENT", ">REPORT", ">FLOWS", "ECMP", ">EPOCH", ">HOPS", "SOURCES"});
  for (const v1::NodeView& node : nodes.nodes()) {
    const bool host = node.kind() == "host";
    std::string sources;
    for (const v1::SourceView& source : node.sources()) {
      sources += (sources.empty() ? "" : ", ") + source.name() + " " + source.state();
      if (!source.reason().empty()) sources += " (" + source.reason() + ")";
    }
    table.add({{node.name()},
               {node.kind()},
               {node.agent_connected() ? "connected"
                : host                 ? "absent"
                                       : "-",
                node.agent_connected() ? Tone::kGood
                : host                 ? Tone::kBad
                                       : Tone::kFaint},
               {host && node.agent_connected() ? format_duration_s(node.report_age_s()) : "-"},
               {host ? std::to_string(node.flows()) : "-"},
               {host ? "-" : node.ecmp()},
               {host ? "-" : std::to_string(node.epoch())},
               {host ? "-" : std::to_string(node.known_hops())},
               {sources}});
  }
  return table.text(colour);
}

std::string render(const v1::SwitchList& switches, bool colour) {
  Table table({"SWITCH", "KIND", "AGENT", "CHOOSES", ">LINKS", ">DOWN", ">DRAINED", ">DATA FLOWS", "EVIDENCE"});
  for (const v1::SwitchView& one : switches.switches()) {
    const bool good = one.ecmp() == "by port";
    const bool unknown = one.ecmp() == "unknown";
    table.add({{one.name()},
               {one.kind()},
               {one.agent_connected() ? "connected" : "-", one.agent_connected() ? Tone::kGood : Tone::kFaint},
               {one.ecmp(), good      ? Tone::kGood
                            : unknown ? Tone::kFaint
                                      : Tone::kWarning},
               {std::to_string(one.links())},
               {std::to_string(one.links_down()), one.links_down() > 0 ? Tone::kBad : Tone::kPlain},
               {std::to_string(one.links_drained()), one.links_drained() > 0 ? Tone::kWarning : Tone::kPlain},
               {std::to_string(one.elastic_flows())},
               {one.ecmp_evidence()}});
  }
  return table.text(colour);
}

std::string render(const v1::Imbalance& imbalance, bool colour) {
  Table table(
      {"TIER", ">LINKS", ">CLOSED", ">LEAST USED", ">MEAN", ">MOST USED", ">VARIATION", ">FLOWS A LINK", "FULLEST"});
  const auto rounded = [](double value) { return std::to_string(std::lround(value)); };
  for (const v1::TierView& tier : imbalance.tiers()) {
    const bool any = tier.links() > 0;
    table.add({{tier.tier()},
               {std::to_string(tier.links())},
               {std::to_string(tier.links_closed()), tier.links_closed() > 0 ? Tone::kWarning : Tone::kPlain},
               {any ? percent(tier.utilisation().least()) : "-"},
               {any ? percent(tier.utilisation().mean()) : "-"},
               {any ? percent(tier.utilisation().most()) : "-"},
               {any ? percent(tier.utilisation().variation()) : "-"},
               {any ? rounded(tier.flows().least()) + " to " + rounded(tier.flows().most()) : "-"},
               {tier.fullest()}});
  }
  std::string text = table.text(colour);
  if (imbalance.slowest_ideal_bps() <= 0) return text + "no data flow with a known path: no share of the ideal\n";
  return text + "slowest flow " + format_rate_bps(imbalance.slowest_now_bps()) + " by the load model, at best " +
         format_rate_bps(imbalance.slowest_ideal_bps()) +
         (imbalance.slowest_ideal_bps() < imbalance.slowest_now_bps() ? " once none is on a link that takes no flows"
                                                                      : "") +
         ": " +
         in_tone(percent(imbalance.lost_share()) + " lost",
                 imbalance.lost_share() >= 0.05 ? Tone::kWarning : Tone::kGood, colour) +
         "\n";
}

std::string render(const v1::LinkList& links, bool colour) {
  Table table({"FROM", "TO", ">CAPACITY", "STATE", ">DATA FLOWS", ">LOAD", ">USED", "EVIDENCE"});
  for (const v1::LinkView& link : links.links()) {
    table.add({{link.from()},
               {link.to()},
               {format_rate_bps(link.capacity_bps())},
               {state_of(link), tone_of_link(link)},
               {std::to_string(link.elastic_flows())},
               {format_rate_bps(link.load_bps())},
               {percent(link.utilisation()), link.utilisation() >= kBusyShare ? Tone::kWarning : Tone::kPlain},
               {evidence_of(link)}});
  }
  return table.text(colour);
}

std::string render(const v1::FlowList& flows, bool colour) {
  const Table table = flow_table(flows.flows());
  return table.empty() ? "no RoCE flows\n" : table.text(colour);
}

std::string render(const v1::PathList& paths, bool colour) {
  std::string text = paths.source() + " -> " + paths.destination() + ": " +
                     count(paths.paths_size(), paths.paths_size() == 1 ? "path, " : "equal-cost paths, ") +
                     count(paths.ports_probed(), "ports probed") + "\n" + option_table(paths.paths(), -1).text(colour);
  if (!paths.note().empty()) text += paths.note() + "\n";
  return text;
}

std::string render(const v1::Explanation& explanation, bool colour) {
  google::protobuf::RepeatedPtrField<v1::FlowView> one;
  *one.Add() = explanation.flow();
  std::string text = flow_table(one).text(colour) + "\n";
  text += line("why", explanation.why());
  text += line("movable", explanation.movable());
  if (explanation.flow().predicted_bps() > 0) {
    text += line("model", format_rate_bps(explanation.flow().predicted_bps()) + " predicted where it is");
  }
  text += "\nwhat is possible (* where it is now)\n" +
          option_table(explanation.options(), explanation.current_option()).text(colour);
  if (explanation.history_size() > 0)
    text += "\nits moves, newest first\n" + move_table(explanation.history()).text(colour);
  return text;
}

std::string render(const v1::PlanView& plan, bool colour) {
  std::string text = "slowest flow " + format_rate_bps(plan.slowest_now_bps()) + " now, " +
                     format_rate_bps(plan.slowest_planned_bps()) + " planned (by the load model, " +
                     format_duration_s(plan.computed_ms() / 1e3) + "); mode " +
                     in_tone(plan.mode(), tone_of_mode(plan.mode()), colour) + "\n";
  const Table table = move_table(plan.moves());
  text += table.empty() ? "nothing to move\n" : table.text(colour);
  for (const std::string& note : plan.notes()) text += "note: " + note + "\n";
  return text;
}

std::string render(const v1::MoveList& moves, bool colour) {
  const Table table = move_table(moves.moves());
  return table.empty() ? "no moves yet\n" : table.text(colour);
}

std::string render(const v1::OverrideList& overrides, bool colour) {
  Table table({"WHAT", "TARGET", "BY", "SINCE", "UNTIL", "REASON"});
  for (const v1::OverrideView& one : overrides.overrides()) {
    table.add({{one.kind()},
               {one.label().empty() ? one.target() : one.target() + " (" + one.label() + ")"},
               {one.who()},
               {local_time(one.set_s())},
               {one.until_s() == 0 ? "taken back" : local_time(one.until_s()),
                one.until_s() == 0 ? Tone::kWarning : Tone::kPlain},
               {one.reason()}});
  }
  std::string text = table.empty() ? "nothing is drained or pinned\n" : table.text(colour);
  for (const std::string& note : overrides.notes()) text += "note: " + note + "\n";
  return text;
}

std::string render(const v1::EventList& events, bool colour) {
  std::string text;
  for (const v1::EventView& event : events.events()) {
    const Tone tone = event.kind() == "error" ? Tone::kBad : event.kind() == "warning" ? Tone::kWarning : Tone::kPlain;
    text += in_tone(local_time(event.wall_s()), Tone::kFaint, colour) + "  " + event.source() + "  " +
            in_tone(event.kind(), tone, colour) + "  " + event.text() + "\n";
  }
  return text;
}

}  // namespace te
