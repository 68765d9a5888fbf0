// SPDX-License-Identifier: Apache-2.0
// What operators want otherwise: links that are to take no flows, flows that stay where they are.
#include <algorithm>

#include "te-controller/engine/engine.h"

namespace te {

Result<std::string> Engine::drain(v1::OverrideView order, bool force, std::int64_t now_ns) {
  const auto links = links_to_drain(*fabric_, order.target());
  if (!links) return links.error();
  std::set<LinkId> all = drained_links();
  all.insert(links->begin(), links->end());
  if (const std::string pair = cut_off_by(routing_, all); !pair.empty() && !force)
    return Error{"with " + order.target() + " drained, " + pair +
                 " would have no way that takes flows; --force (force=true) drains it all the same"};
  order.set_target(drain_name(*fabric_, order.target()));
  order.set_kind(Overrides::kDrain);
  return override_with(std::move(order), now_ns);
}

Result<std::string> Engine::pin(v1::OverrideView order, std::int64_t now_ns) {
  const auto flow = fleet_.find_by_beginning(order.target());
  if (!flow) return flow.error();
  order.set_target((*flow)->id.short_id());
  order.set_label(label_of(*fabric_, (*flow)->id));
  order.set_kind(Overrides::kPin);
  return override_with(std::move(order), now_ns);
}

std::string Engine::override_with(v1::OverrideView order, std::int64_t now_ns) {
  const double ttl_s = order.until_s();  // as the caller gives it: from now
  order.set_set_s(wall_s(now_ns));
  if (ttl_s > 0) order.set_until_s(order.set_s() + ttl_s);
  const v1::OverrideView* older = overrides_.find(order.kind(), order.target());
  const std::string replaced = older == nullptr ? std::string() : describe(*older, order.set_s());
  link_news_.push_back(
      {(order.label().empty() ? order.target() : order.label()) + " is " + describe(order, order.set_s())});
  overrides_.set(std::move(order));
  overrides_changed(now_ns);
  return replaced;
}

Result<void> Engine::take_back(const std::string& kind, const std::string& target, const std::string& who,
                               std::int64_t now_ns) {
  const std::string held = kind == Overrides::kPin ? pinned_flow(target) : drain_name(*fabric_, target);
  auto erased = overrides_.erase(kind, held);
  if (!erased) return erased;
  link_news_.push_back({"the " + kind + " of " + held + " is over: taken back by " + who, false});
  overrides_changed(now_ns);
  return {};
}

/// The one pin whose flow's id begins so; else what was asked.
std::string Engine::pinned_flow(const std::string& beginning) const {
  std::vector<std::string> ids;
  for (const v1::OverrideView& one : overrides_.all()) {
    if (one.kind() == Overrides::kPin && !beginning.empty() && one.target().starts_with(beginning))
      ids.push_back(one.target());
  }
  return ids.size() == 1 ? ids.front() : beginning;
}

void Engine::expire_overrides(std::int64_t now_ns) {
  const auto ended = overrides_.expire(wall_s(now_ns));
  for (const v1::OverrideView& one : ended)
    link_news_.push_back(
        {"the " + one.kind() + " of " + one.target() + " is over: so is the time that " + one.who() + " gave", false});
  if (!ended.empty()) overrides_changed(now_ns);
}

std::set<LinkId> Engine::drained_links() const {
  std::set<LinkId> links;
  for (const v1::OverrideView& one : overrides_.all()) {
    if (one.kind() != Overrides::kDrain) continue;
    if (const auto of = links_to_drain(*fabric_, one.target())) links.insert(of->begin(), of->end());
  }
  return links;
}

void Engine::overrides_changed(std::int64_t now_ns) {
  link_watch_.set_drained(drained_links());
  watch_links(now_ns);
  plan_stale_ = true;
  planned_ns_ = 0;  // plan at once
}

}  // namespace te
