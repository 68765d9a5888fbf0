// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <functional>
#include <map>
#include <memory>
#include <span>
#include <string>
#include <vector>

#include "host-agent/core/agent_config.h"

namespace te::agent {

class NamespaceThread;

/// The network namespaces that the agent's NICs are in, by the path that the configuration gives them ("" is the
/// agent's own). Each has a thread that entered it at the start and stays: what needs no more than CAP_NET_ADMIN and
/// CAP_BPF can be done there later, when the capability to enter is given up. To be used by one thread.
class NetNamespaces {
 public:
  NetNamespaces();
  /// Enters all that `nics` name (needs CAP_SYS_ADMIN). One that cannot be entered is as one that ended.
  explicit NetNamespaces(std::span<const NicName> nics);
  NetNamespaces(NetNamespaces&&) noexcept;
  NetNamespaces& operator=(NetNamespaces&&) noexcept;
  ~NetNamespaces();

  /// Does `work` in a namespace and returns when it is done. An Error when the agent is not in that namespace (any
  /// more).
  Result<void> run_in(const std::string& netns, const std::function<void()>& work);
  /// Does `work` in each namespace, the agent's own first; it is given the number of each.
  void run_in_each(const std::function<void(std::uint64_t)>& work);
  /// What tells a namespace from all others that are there; 0: the agent's own, or not entered.
  [[nodiscard]] std::uint64_t number_of(const std::string& netns) const;

  /// Those whose path leads nowhere or elsewhere by now: nobody but the agent may be holding them. leave() them.
  [[nodiscard]] std::vector<std::string> ended() const;
  /// Ends the thread there. Sockets of the namespace, for the caller to close, hold it too.
  void leave(const std::string& netns);

  /// As te::agent::keep_only_capabilities(), for the threads in the namespaces.
  Result<void> keep_only_capabilities(std::span<const int> kept);

 private:
  struct Entry {
    std::unique_ptr<NamespaceThread> thread;  // none: not entered, or left
    std::string problem;
  };
  std::map<std::string, Entry> entries_;
};

}  // namespace te::agent
