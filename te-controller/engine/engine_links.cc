// SPDX-License-Identifier: Apache-2.0
// What the engine makes of news of links, and of switches that do not choose by the port.
#include "te-controller/engine/engine.h"

namespace te {

/// Who answers once can be missed later.
void Engine::note_answers(const v1::ProbeResult& result) {
  for (const v1::ProbeAnswer& answer : result.answers()) {
    if (answer.responder().empty()) continue;
    const auto address = IpAddress::from_bytes(
        {reinterpret_cast<const std::uint8_t*>(answer.responder().data()), answer.responder().size()});
    const auto port = address ? fabric_->find_address(*address) : std::nullopt;
    if (!port) continue;
    link_watch_.heard(fabric_->port(*port).node);
    trials_.heard(fabric_->port(*port).node);
  }
}

void Engine::try_switches(std::int64_t now_ns) {
  const auto active = [&](const AddressPair& pair) { return prober_.target(pair) != nullptr; };
  for (const auto& [pair, port] : trials_.wanted(active, now_ns)) prober_.verify(pair, port);
  if (!trials_.take_changed()) return;
  plan_stale_ = true;
  for (NodeId node = 0; node < fabric_->nodes().size(); ++node) {
    const SwitchManner manner = trials_.manner(node);
    if (manner == SwitchManner::kSilent) silent_.insert(node);
    if (manner != SwitchManner::kSilent && silent_.erase(node) > 0) prober_.knowledge_changed();
    if (manner == SwitchManner::kIgnoresPort || manner == SwitchManner::kVaries) {
      const bool news = distrusted_.insert(node).second;
      if (news && manner == SwitchManner::kVaries) link_watch_.forget_losses();
    }
    if (manner != SwitchManner::kByPort) continue;
    const bool refused = knowledge_.switch_knowledge(node).state == SwitchEcmp::kNotAFunction;
    if (distrusted_.erase(node) == 0 && !refused) continue;
    knowledge_.trust_again(node);  // what was learned while it chose otherwise is worth nothing
    prober_.knowledge_changed();
  }
}

void Engine::watch_links(std::int64_t now_ns) {
  bool paths = false;
  for (const LinkWatch::Change& change : link_watch_.judge(now_ns)) {
    paths |= change.paths;
    if (change.before == change.now.condition) continue;  // drained by an operator, or not any more
    const bool well = change.now.condition == diagnosis::LinkCondition::kHealthy ||
                      change.now.condition == diagnosis::LinkCondition::kUnknown;
    link_news_.push_back({fabric_->link_name(change.link) + " was " + std::string(to_string(change.before)) + ", is " +
                              std::string(to_string(change.now.condition)) +
                              (change.now.evidence.empty() ? "" : ": " + change.now.evidence),
                          !well});
  }
  if (!paths) return;
  snapshot_.reset();
  for (const NodeId node : knowledge_.sync()) {
    trials_.begin_anew(node);
    link_news_.push_back({fabric_->node(node).name + " hashes over another group now: its ports are probed again"});
  }
  prober_.knowledge_changed();
  targets_stale_ = true;  // hosts may have lost their way, or have one again
  mover_.supersede_all("a link changed meanwhile: rates before and after do not compare");
  links_changed_ns_ = now_ns;
  plan_stale_ = true;
  planned_ns_ = 0;  // plan at once
}

}  // namespace te
