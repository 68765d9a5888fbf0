// SPDX-License-Identifier: Apache-2.0
#include "host-agent/io/metrics.h"

#include <prometheus/counter.h>
#include <prometheus/gauge.h>
#include <prometheus/text_serializer.h>

#include <array>

namespace te::agent {
namespace {

struct CounterRow {
  const char* name;
  const char* help;
  std::uint64_t AgentFigures::*figure;
};

struct GaugeRow {
  const char* name;
  const char* help;
  double AgentFigures::*figure;
};

constexpr std::array kCounters = {
    CounterRow{"te_agent_readings_total", "Readings of the kernel's flow maps", &AgentFigures::readings},
    CounterRow{"te_agent_reading_failures_total", "Readings that failed", &AgentFigures::reading_failures},
    CounterRow{"te_agent_kernel_events_total", "Events taken from the ring buffer", &AgentFigures::kernel_events},
    CounterRow{"te_agent_kernel_events_lost_total", "Events that found the ring buffer full",
               &AgentFigures::kernel_events_lost},
    CounterRow{"te_agent_kernel_flow_packets_lost_total", "Packets of flows that found the kernel's flow map full",
               &AgentFigures::kernel_flows_lost},
    CounterRow{"te_agent_unsteered_packets_total", "Packets of steered flows that could not be rewritten",
               &AgentFigures::unsteered_packets},
    CounterRow{"te_agent_flows_left_out_total", "Flows that found the agent's table full, once a reading",
               &AgentFigures::flows_left_out},
    CounterRow{"te_agent_steering_actions_total", "Steering entries set or cleared", &AgentFigures::steering_actions},
    CounterRow{"te_agent_steering_failures_total", "Steering entries that could not be set or cleared",
               &AgentFigures::steering_failures},
    CounterRow{"te_agent_steering_idle_dropped_total",
               "Steering entries let go because their flow sent nothing for long",
               &AgentFigures::steering_idle_dropped},
    CounterRow{"te_agent_steering_reused_dropped_total",
               "Steering entries let go because their queue pair's number belongs to another connection",
               &AgentFigures::steering_reused_dropped},
    CounterRow{"te_agent_sessions_total", "Sessions with a controller", &AgentFigures::sessions},
    CounterRow{"te_agent_session_failures_total", "Attempts that gave no session, and sessions that broke",
               &AgentFigures::session_failures},
    CounterRow{"te_agent_certificate_renewals_total", "Times that certificate files were read again",
               &AgentFigures::certificate_renewals},
    CounterRow{"te_agent_certificate_failures_total", "Times that they could not be used and the ones before stayed",
               &AgentFigures::certificate_failures},
    CounterRow{"te_agent_events_lost_total", "Events and probe results that found their queue full",
               &AgentFigures::events_lost},
    CounterRow{"te_agent_probes_sent_total", "Path probes sent", &AgentFigures::probes_sent},
    CounterRow{"te_agent_probes_lost_total", "Path probes without an answer in time", &AgentFigures::probes_lost},
    CounterRow{"te_agent_probes_unreachable_total", "Path probes to which a switch answered that it has no way on",
               &AgentFigures::probes_unreachable},
    CounterRow{"te_agent_probe_answers_unknown_total",
               "ICMP answers about RoCEv2 packets that are no probe of this agent",
               &AgentFigures::probe_answers_unknown},
    CounterRow{"te_agent_link_updates_total", "Updates about network interfaces sent", &AgentFigures::link_updates},
    CounterRow{"te_agent_link_messages_lost_total",
               "Times that the kernel told of more changed links than the socket held",
               &AgentFigures::link_messages_lost},
    CounterRow{"te_agent_links_left_out_total", "Times that a network interface beyond the 4,096 watched was left out",
               &AgentFigures::links_left_out},
    CounterRow{"te_agent_carrier_losses_total", "Times that a watched network interface lost its carrier",
               &AgentFigures::carrier_losses},
};

constexpr std::array kGauges = {
    GaugeRow{"te_agent_flows", "Flows known now", &AgentFigures::flows},
    GaugeRow{"te_agent_steered_flows", "Flows steered now", &AgentFigures::steered_flows},
    GaugeRow{"te_agent_links", "Network interfaces watched that exist", &AgentFigures::links},
    GaugeRow{"te_agent_links_with_carrier", "Of these, those with a carrier", &AgentFigures::links_with_carrier},
    GaugeRow{"te_agent_connected", "1 while there is a session with a controller", &AgentFigures::connected},
};

}  // namespace

Metrics::Metrics() {
  for (const CounterRow& row : kCounters) {
    counters_.push_back(&prometheus::BuildCounter().Name(row.name).Help(row.help).Register(registry_).Add({}));
  }
  for (const GaugeRow& row : kGauges) {
    gauges_.push_back(&prometheus::BuildGauge().Name(row.name).Help(row.help).Register(registry_).Add({}));
  }
}

void Metrics::update(const AgentFigures& figures) {
  for (std::size_t i = 0; i < kCounters.size(); ++i) {
    const double growth = static_cast<double>(figures.*kCounters[i].figure) - counters_[i]->Value();
    if (growth > 0) counters_[i]->Increment(growth);
  }
  for (std::size_t i = 0; i < kGauges.size(); ++i) gauges_[i]->Set(figures.*kGauges[i].figure);
}

std::string Metrics::text() const { return prometheus::TextSerializer().Serialize(registry_.Collect()); }

}  // namespace te::agent
