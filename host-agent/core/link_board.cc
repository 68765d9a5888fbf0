// SPDX-License-Identifier: Apache-2.0
#include "host-agent/core/link_board.h"

#include <algorithm>
#include <set>
#include <utility>

#include "host-agent/core/messages.h"

namespace te::agent {

LinkBoard::LinkBoard(std::vector<std::string> interfaces) : interfaces_(std::move(interfaces)) {
  for (const std::string& name : interfaces_) entries_[name];
}

bool LinkBoard::watches(const std::string& name) const {
  return interfaces_.empty() ? name != "lo" : entries_.contains(name);
}

LinkBoard::State LinkBoard::state_of(const Entry& entry) {
  if (!entry.link) return {};
  return {entry.link->ifindex, entry.link->up, entry.link->carrier, entry.link->carrier_changes};
}

void LinkBoard::clear(Entry& entry) {
  if (entry.link && entry.link->carrier) ++carrier_losses_;
  entry.link.reset();
}

/// Interfaces that come and go while nobody listens leave nothing behind.
void LinkBoard::forget_untold() {
  if (!interfaces_.empty()) return;
  std::erase_if(entries_, [](const auto& item) { return !item.second.link && !item.second.told; });
}

void LinkBoard::take_all(std::span<const netlink::LinkMessage> links) {
  std::set<std::string> listed;
  for (const netlink::LinkMessage& link : links) listed.insert(link.name);
  for (auto& [name, entry] : entries_) {
    if (!listed.contains(name)) clear(entry);
  }
  forget_untold();
  for (const netlink::LinkMessage& link : links) take(link);
}

void LinkBoard::take(const netlink::LinkMessage& link) {
  for (auto& [name, entry] : entries_) {
    if (entry.link && entry.link->ifindex == link.ifindex && name != link.name) clear(entry);
  }
  forget_untold();
  if (!watches(link.name)) return;
  if (entries_.size() >= kMostLinks && !entries_.contains(link.name)) {
    ++left_out_;
    return;
  }
  Entry& entry = entries_[link.name];
  if (entry.link) {
    const bool lost = entry.link->carrier && !link.carrier;
    // Down and up again between two looks: every second change is a loss.
    const std::uint32_t unseen = link.carrier_changes - entry.link->carrier_changes;
    const bool same_one = entry.link->ifindex == link.ifindex && link.carrier_changes >= entry.link->carrier_changes;
    carrier_losses_ += same_one ? (unseen + (entry.link->carrier ? 1 : 0)) / 2 : (lost ? 1 : 0);
  }
  entry.link = link;
}

void LinkBoard::remove(std::uint32_t ifindex) {
  for (auto& [name, entry] : entries_) {
    if (entry.link && entry.link->ifindex == ifindex) clear(entry);
  }
  forget_untold();
}

void LinkBoard::add_report(const std::string& name, const Entry& entry, v1::LinkUpdate& update) {
  v1::LinkReport& report = *update.add_links();
  if (entry.link) report = to_message(*entry.link);
  report.set_interface(name);
}

v1::LinkUpdate LinkBoard::all() const {
  v1::LinkUpdate update;
  update.set_complete(true);
  for (const auto& [name, entry] : entries_) add_report(name, entry, update);
  return update;
}

v1::LinkUpdate LinkBoard::changes() const {
  v1::LinkUpdate update;
  for (const auto& [name, entry] : entries_) {
    if (entry.told != state_of(entry)) add_report(name, entry, update);
  }
  return update;
}

void LinkBoard::mark_told() {
  // Where all are watched, one that is gone has now been told as gone.
  if (interfaces_.empty()) std::erase_if(entries_, [](const auto& item) { return !item.second.link; });
  for (auto& [name, entry] : entries_) entry.told = state_of(entry);
}

std::size_t LinkBoard::present() const {
  return static_cast<std::size_t>(
      std::ranges::count_if(entries_, [](const auto& item) { return item.second.link.has_value(); }));
}

std::size_t LinkBoard::with_carrier() const {
  return static_cast<std::size_t>(
      std::ranges::count_if(entries_, [](const auto& item) { return item.second.link && item.second.link->carrier; }));
}

}  // namespace te::agent
