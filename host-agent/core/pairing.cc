// SPDX-License-Identifier: Apache-2.0
#include "host-agent/core/pairing.h"

#include <map>
#include <set>
#include <tuple>
#include <unordered_map>

#include "common/roce/source_port.h"

namespace te::agent {
namespace {

/// Local end, address pair: what all flows between this NIC port and one peer share.
struct Peering {
  std::uint32_t ifindex = 0;
  IpAddress local;
  IpAddress peer;
  auto operator<=>(const Peering&) const = default;
};

Peering peering_of(const FlowRecord& flow) {
  if (flow.direction == FlowDirection::kIngress) return {flow.key.ifindex, flow.key.destination, flow.key.source};
  return {flow.key.ifindex, flow.key.source, flow.key.destination};
}

class Pairing {
 public:
  Pairing(std::span<const FlowRecord> flows, std::span<const QueuePair> qps) {
    for (const QueuePair& qp : qps) {
      by_local_.emplace(qp.local_qpn, &qp);
      by_remote_.emplace(qp.remote_qpn, &qp);
    }
    for (const FlowRecord& flow : flows) {
      const bool ingress = flow.direction == FlowDirection::kIngress;
      (ingress ? ingress_ : egress_).emplace(peering_of(flow), flow.key.destination_qpn);
      if (ingress) ingress_qpns_.insert(flow.key.destination_qpn);
    }
    for (const auto& [peering, remote_qpn] : egress_) {
      if (owner_seen_both_ways(peering, by_remote_, remote_qpn) == nullptr) ++unowned_egress_[remote_qpn];
    }
  }

  [[nodiscard]] const QueuePair* owner(const FlowRecord& flow) const {
    const Peering peering = peering_of(flow);
    const std::uint32_t qpn = flow.key.destination_qpn;
    const bool ingress = flow.direction == FlowDirection::kIngress;
    const Index& index = ingress ? by_local_ : by_remote_;
    if (const QueuePair* qp = owner_seen_both_ways(peering, index, qpn)) return qp;
    return ingress ? only_one(qpn) : only_unseen(qpn);
  }

 private:
  using Index = std::unordered_multimap<std::uint32_t, const QueuePair*>;

  /// The one candidate whose both directions were seen between these two addresses; none when two were.
  [[nodiscard]] const QueuePair* owner_seen_both_ways(const Peering& peering, const Index& index,
                                                      std::uint32_t qpn) const {
    const QueuePair* owner = nullptr;
    const auto [begin, end] = index.equal_range(qpn);
    for (auto it = begin; it != end; ++it) {
      const QueuePair* qp = it->second;
      if (!ingress_.contains({peering, qp->local_qpn}) || !egress_.contains({peering, qp->remote_qpn})) continue;
      if (owner != nullptr) return nullptr;
      owner = qp;
    }
    return owner;
  }

  [[nodiscard]] const QueuePair* only_one(std::uint32_t local_qpn) const {
    return by_local_.count(local_qpn) == 1 ? by_local_.find(local_qpn)->second : nullptr;
  }

  /// The one candidate to whose local QPN nobody has sent yet, when a single egress flow is still looking for it.
  [[nodiscard]] const QueuePair* only_unseen(std::uint32_t remote_qpn) const {
    const auto waiting = unowned_egress_.find(remote_qpn);
    if (waiting == unowned_egress_.end() || waiting->second != 1) return nullptr;
    const QueuePair* owner = nullptr;
    const auto [begin, end] = by_remote_.equal_range(remote_qpn);
    for (auto it = begin; it != end; ++it) {
      if (ingress_qpns_.contains(it->second->local_qpn)) continue;
      if (owner != nullptr) return nullptr;
      owner = it->second;
    }
    return owner;
  }

  Index by_local_;
  Index by_remote_;
  std::set<std::pair<Peering, std::uint32_t>> ingress_;  // destination QPN: a local one
  std::set<std::pair<Peering, std::uint32_t>> egress_;   // destination QPN: a remote one
  std::set<std::uint32_t> ingress_qpns_;
  std::map<std::uint32_t, int> unowned_egress_;
};

}  // namespace

std::vector<PairedFlow> pair_flows(std::span<const FlowRecord> flows, std::span<const QueuePair> qps) {
  const Pairing pairing(flows, qps);
  std::vector<PairedFlow> paired;
  paired.reserve(flows.size());
  for (const FlowRecord& flow : flows) {
    PairedFlow result{flow.key, std::nullopt, std::nullopt};
    // What a packet says itself is known without a table.
    (flow.direction == FlowDirection::kIngress ? result.local_qpn : result.remote_qpn) = flow.key.destination_qpn;
    if (const QueuePair* qp = pairing.owner(flow)) {
      result.local_qpn = qp->local_qpn;
      result.remote_qpn = qp->remote_qpn;
    }
    paired.push_back(result);
  }
  return paired;
}

v1::PortProvenance provenance_of(const FlowRecord& flow) {
  if (flow.steer_port != 0) return v1::PORT_SET_BY_US;
  if (flow.source_port == 0) return v1::PORT_UNKNOWN;
  if (flow.local_qpn && flow.remote_qpn &&
      flow.source_port == roce::source_port_of_qp(0, *flow.local_qpn, *flow.remote_qpn)) {
    return v1::PORT_FROM_QPNS;
  }
  if (flow.flow_label != 0 && flow.source_port == roce::source_port_of_flow_label(flow.flow_label)) {
    return v1::PORT_FROM_FLOW_LABEL;
  }
  return v1::PORT_SEEN;
}

}  // namespace te::agent
