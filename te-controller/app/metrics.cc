// SPDX-License-Identifier: Apache-2.0
#include "te-controller/app/metrics.h"

#include <prometheus/counter.h>
#include <prometheus/gauge.h>
#include <prometheus/registry.h>
#include <prometheus/text_serializer.h>

#include <sstream>

namespace te {

/// Every metric with its meaning: docs are made from this list.
struct Metrics::Families {
  prometheus::Registry registry;

  prometheus::Gauge& gauge(const char* name, const char* help) {
    return prometheus::BuildGauge().Name(name).Help(help).Register(registry).Add({});
  }
  prometheus::Counter& counter(const char* name, const char* help) {
    return prometheus::BuildCounter().Name(name).Help(help).Register(registry).Add({});
  }
  prometheus::Family<prometheus::Counter>& counters(const char* name, const char* help) {
    return prometheus::BuildCounter().Name(name).Help(help).Register(registry);
  }
  static void raise(prometheus::Family<prometheus::Counter>& family, const std::string& reason, std::uint64_t to) {
    raise(family.Add({{"reason", reason}}), static_cast<double>(to));
  }
  static void raise(prometheus::Counter& counter, double to) {
    if (to > counter.Value()) counter.Increment(to - counter.Value());
  }

  prometheus::Gauge& mode = gauge("te_controller_mode", "0 observes, 1 acts, 2 is paused");
  prometheus::Gauge& agents_connected = gauge("te_controller_agents_connected", "Hosts whose agent has a session");
  prometheus::Gauge& agents_expected = gauge("te_controller_agents_expected", "Hosts of the fabric");
  prometheus::Gauge& switch_agents =
      gauge("te_controller_switch_agents_connected", "Switches whose agent has a session");
  prometheus::Gauge& flows = gauge("te_controller_flows", "Flows known, one direction each");
  prometheus::Gauge& elastic = gauge("te_controller_elastic_flows", "Flows that carry message data");
  prometheus::Gauge& known = gauge("te_controller_flows_with_known_path", "Flows whose path is known");
  prometheus::Gauge& steered = gauge("te_controller_flows_steered", "Flows whose source port we set");
  prometheus::Gauge& slowest =
      gauge("te_controller_slowest_flow_bps", "Message data of the slowest elastic flow, bits/s, measured");
  prometheus::Gauge& predicted =
      gauge("te_controller_planned_slowest_flow_bps",
            "Message data of the slowest elastic flow by the load model if the plan were carried out, bits/s");
  prometheus::Gauge& plan_seconds = gauge("te_controller_last_plan_seconds", "Time the last planning cycle took");
  prometheus::Gauge& store_failing =
      gauge("te_controller_store_failing", "1 while the state database cannot be written");
  prometheus::Gauge& known_hops = gauge("te_controller_known_hops", "Hops of ECMP knowledge held");
  prometheus::Counter& cycles = counter("te_controller_plan_cycles_total", "Planning cycles");
  prometheus::Counter& moves = counter("te_controller_moves_total", "Entries of the ledger of moves");
  prometheus::Counter& rollbacks =
      counter("te_controller_rollbacks_total", "Moves taken back because they were judged worse");
  prometheus::Counter& probes_sent =
      counter("te_controller_probes_sent_total", "Probe packets that agents sent for us");
  prometheus::Counter& probes_lost = counter("te_controller_probes_lost_total", "Probe packets without an answer");
  prometheus::Counter& probes_refused =
      counter("te_controller_probe_answers_refused_total", "Probe answers that fit no path of the topology file");
  prometheus::Counter& sessions = counter("te_controller_sessions_total", "Agent sessions accepted");
  prometheus::Counter& refused = counter("te_controller_sessions_refused_total",
                                         "Agent sessions refused: handshake, certificate or Hello not right");
  prometheus::Counter& revoked = counter("te_controller_sessions_revoked_total",
                                         "Agent sessions refused or ended because their certificate is revoked");
  prometheus::Counter& slowed =
      counter("te_controller_sessions_slowed_total", "Pauses in reading from an agent that sends more than its limits");
  prometheus::Counter& broken =
      counter("te_controller_sessions_broken_total", "Agent sessions ended by a message that could not be read");
  prometheus::Counter& overflowed =
      counter("te_controller_sessions_overflowed_total", "Agent sessions ended because the agent did not read");
  prometheus::Counter& foreign =
      counter("te_controller_foreign_reports_total", "Flow reports that spoke for another node's address");
  prometheus::Counter& dropped =
      counter("te_controller_flows_dropped_total", "Flow reports above the limit of flows a node");
  prometheus::Counter& moves_lost =
      counter("te_controller_ledger_entries_lost_total", "Ledger entries not stored because the disk failed for long");
  prometheus::Family<prometheus::Counter>& api_refused =
      counters("te_controller_api_refused_total", "API calls and connections refused, by reason");
  prometheus::Counter& api_displaced = counter("te_controller_api_connections_displaced_total",
                                               "API connections closed to make room for those of others");
  prometheus::Counter& enrolments = counter("te_controller_enrolments_total", "Nodes that were given a certificate");
  prometheus::Family<prometheus::Counter>& enrolments_refused =
      counters("te_controller_enrolments_refused_total", "Attempts to enrol refused, by reason");
};

Metrics::Metrics(Engine& engine, const AgentServer& agents, const StoreWriter& store)
    : engine_(&engine), views_(engine), agents_(&agents), store_(&store), families_(std::make_unique<Families>()) {}

Metrics::~Metrics() = default;

void Metrics::watch(const Gate& gate, const Enrolment& enrolment,
                    const std::vector<std::unique_ptr<HttpServer>>& servers) {
  gate_ = &gate;
  enrolment_ = &enrolment;
  servers_.clear();
  for (const auto& server : servers) servers_.push_back(server.get());
}

void Metrics::refresh_api() {
  if (gate_ == nullptr) return;
  Families& all = *families_;
  HttpServer::Counters sum;
  for (const HttpServer* server : servers_) {
    const HttpServer::Counters one = server->counters();
    sum.handshakes_failed += one.handshakes_failed;
    sum.certificates_bad += one.certificates_bad;
    sum.certificates_revoked += one.certificates_revoked;
    sum.displaced += one.displaced;
  }
  Families::raise(all.api_refused, "handshake", sum.handshakes_failed);
  Families::raise(all.api_refused, "certificate", sum.certificates_bad);
  Families::raise(all.api_refused, "revoked", sum.certificates_revoked);
  Families::raise(all.api_displaced, static_cast<double>(sum.displaced));
  for (const auto& [reason, count] : gate_->refused()) Families::raise(all.api_refused, reason, count);
  for (const auto& [reason, count] : enrolment_->refused()) Families::raise(all.enrolments_refused, reason, count);
  Families::raise(all.enrolments, static_cast<double>(enrolment_->accepted()));
}

void Metrics::refresh(std::int64_t now_ns) {
  Families& all = *families_;
  const v1::Status status = views_.status(now_ns);
  all.mode.Set(static_cast<double>(engine_->mode()));
  all.agents_connected.Set(status.agents_connected());
  all.agents_expected.Set(status.agents_expected());
  all.switch_agents.Set(status.switch_agents_connected());
  all.flows.Set(status.flows());
  all.elastic.Set(status.elastic_flows());
  all.known.Set(status.flows_with_known_path());
  all.steered.Set(status.flows_steered());
  all.slowest.Set(status.slowest_flow_bps());
  all.predicted.Set(status.predicted_slowest_flow_bps());
  all.plan_seconds.Set(status.last_plan_ms() / 1e3);
  all.store_failing.Set(store_->problem().empty() ? 0 : 1);
  all.known_hops.Set(static_cast<double>(engine_->knowledge().hops()));
  Families::raise(all.cycles, engine_->plan_cycles());
  Families::raise(all.moves, status.moves_total());
  Families::raise(all.rollbacks, status.rollbacks_total());
  Families::raise(all.probes_sent, static_cast<double>(engine_->prober().counters().sent));
  Families::raise(all.probes_lost, static_cast<double>(engine_->prober().counters().lost));
  Families::raise(all.probes_refused, static_cast<double>(engine_->prober().counters().refused));
  Families::raise(all.sessions, static_cast<double>(agents_->counters().accepted));
  Families::raise(all.refused, static_cast<double>(agents_->counters().refused));
  Families::raise(all.revoked, static_cast<double>(agents_->counters().revoked));
  Families::raise(all.slowed, static_cast<double>(agents_->counters().slowed));
  Families::raise(all.broken, static_cast<double>(agents_->counters().broken));
  Families::raise(all.overflowed, static_cast<double>(agents_->counters().overflowed));
  Families::raise(all.foreign, static_cast<double>(engine_->fleet().foreign_reports()));
  Families::raise(all.dropped, static_cast<double>(engine_->fleet().flows_dropped()));
  Families::raise(all.moves_lost, static_cast<double>(store_->moves_lost()));
  refresh_api();
}

HttpReply Metrics::answer(const HttpRequest& request, std::int64_t now_ns) {
  const bool get = request.method == "GET" || request.method == "HEAD";
  if (get && request.path == "/healthz") return HttpReply{.status = 200, .content_type = "text/plain", .body = "ok\n"};
  if (!get || request.path != "/metrics") {
    return HttpReply{.status = 404,
                     .content_type = "text/plain",
                     .body = "here are /metrics and /healthz; the API is on its own socket\n"};
  }
  refresh(now_ns);
  std::ostringstream text;
  prometheus::TextSerializer().Serialize(text, families_->registry.Collect());
  return HttpReply{.status = 200, .content_type = "text/plain; version=0.0.4", .body = text.str()};
}

}  // namespace te
