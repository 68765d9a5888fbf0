// SPDX-License-Identifier: Apache-2.0
#include "host-agent/io/net_namespaces.h"

#include <utility>

#include "host-agent/io/capabilities.h"
#include "host-agent/io/namespace_thread.h"

namespace te::agent {

NetNamespaces::NetNamespaces() = default;
NetNamespaces::NetNamespaces(NetNamespaces&&) noexcept = default;
NetNamespaces& NetNamespaces::operator=(NetNamespaces&&) noexcept = default;
NetNamespaces::~NetNamespaces() = default;

NetNamespaces::NetNamespaces(std::span<const NicName> nics) {
  for (const NicName& nic : nics) {
    if (nic.netns.empty() || entries_.contains(nic.netns)) continue;
    Entry& entry = entries_[nic.netns];
    auto entered = NamespaceThread::enter(nic.netns);
    if (entered) {
      entry.thread = *std::move(entered);
    } else {
      entry.problem = entered.error().message + "; restart the agent once it can be entered";
    }
  }
}

Result<void> NetNamespaces::run_in(const std::string& netns, const std::function<void()>& work) {
  if (netns.empty()) {
    work();
    return {};
  }
  const auto found = entries_.find(netns);
  if (found == entries_.end()) return Error{"network namespace " + netns + " is not in the configuration"};
  if (!found->second.thread) return Error{found->second.problem};
  found->second.thread->run(work);
  return {};
}

void NetNamespaces::run_in_each(const std::function<void(std::uint64_t)>& work) {
  work(0);
  for (const auto& [path, entry] : entries_) {
    if (!entry.thread || entry.thread->number() == 0) continue;
    const std::uint64_t number = entry.thread->number();
    entry.thread->run([&] { work(number); });
  }
}

std::uint64_t NetNamespaces::number_of(const std::string& netns) const {
  const auto found = entries_.find(netns);
  return found == entries_.end() || !found->second.thread ? 0 : found->second.thread->number();
}

std::vector<std::string> NetNamespaces::ended() const {
  std::vector<std::string> paths;
  for (const auto& [path, entry] : entries_) {
    if (entry.thread && !entry.thread->is_behind(path)) paths.push_back(path);
  }
  return paths;
}

void NetNamespaces::leave(const std::string& netns) {
  const auto found = entries_.find(netns);
  if (found == entries_.end()) return;
  found->second.thread.reset();
  found->second.problem =
      "network namespace " + netns + " ended; restart the agent to enter the one that is there then";
}

Result<void> NetNamespaces::keep_only_capabilities(std::span<const int> kept) {
  for (const auto& [path, entry] : entries_) {
    if (!entry.thread) continue;
    Result<void> dropped;
    entry.thread->run([&] { dropped = te::agent::keep_only_capabilities(kept); });
    if (!dropped) return with_context(std::move(dropped).error(), "thread in " + path);
  }
  return {};
}

}  // namespace te::agent
