// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <set>
#include <string>
#include <vector>

#include "common/base/result.h"
#include "host-agent/core/flow_sample.h"

namespace te::agent {

struct BpfObjects;

enum class AttachMode : std::uint8_t { kAuto, kTcx, kClsact };

struct BpfDatapathOptions {
  /// Calls what it is given in each network namespace that may have attachments, the agent's own first, with its
  /// number.
  using InEach = std::function<void(const std::function<void(std::uint64_t)>&)>;

  /// On a bpffs; made if missing. Programs, maps and TCX links are pinned there. One for each agent.
  std::string pin_directory;
  InEach in_each_netns = [](const auto& work) { work(0); };
};

/// The tc programs of this host: loaded once, pinned, adopted by the next agent. Not thread safe.
class BpfDatapath {
 public:
  struct Losses {
    std::uint64_t events = 0;  ///< ring buffer full
    std::uint64_t flows = 0;   ///< packets of flows that found the flow map full
    std::uint64_t unsteered_packets =
        0;  ///< of steered flows, sent with their own port since they could not be changed
  };

  /// Loads and pins, or adopts what is pinned already. From programs of another ABI version it takes over: all steering
  /// goes on without a gap, counters begin anew. Errors say what was tried and what to do (not root, no bpffs, a pinned
  /// layout that cannot be read, ...).
  static Result<BpfDatapath> open(const BpfDatapathOptions& options);
  BpfDatapath(BpfDatapath&&) noexcept;
  BpfDatapath& operator=(BpfDatapath&&) noexcept;
  ~BpfDatapath();

  /// Attaches both directions to an Ethernet interface of the calling thread's network namespace; already attached is
  /// fine, and attached in the other mode is changed. Returns the mode in force. Never ends the chain for other
  /// programs. `netns` tells that namespace from others; 0: the agent's own.
  Result<AttachMode> attach(const std::string& interface, AttachMode wanted, std::uint64_t netns = 0);
  Result<void> detach(const std::string& interface, std::uint64_t netns = 0);
  /// An interface, by its index in a network namespace.
  struct Place {
    std::uint32_t ifindex = 0;
    std::uint64_t netns = 0;
    auto operator<=>(const Place&) const = default;
  };
  /// Takes off what an earlier agent, with other interfaces in its list, left elsewhere: TCX programs wherever they
  /// are, filters of clsact in the namespaces of the options.
  Result<void> keep_only(const std::set<Place>& places);

  /// Every flow in the kernel, IPv4 and IPv6.
  Result<std::vector<FlowSample>> read_flows();
  /// Steers an egress flow to `port` (0xC000..0xFFFF), or lets it go (0). Counters of the flow are kept.
  Result<void> set_steering(const FlowKey& key, std::uint16_t port);
  /// Forgets a flow that is idle; a steered flow is an Error.
  Result<void> erase_flow(const FlowKey& key);

  /// Readable when events wait.
  [[nodiscard]] int event_fd() const;
  /// Hands over all waiting events; returns how many.
  std::size_t drain_events(const std::function<void(const KernelEvent&)>& take);
  [[nodiscard]] Result<Losses> losses() const;

  /// Removes what open() and attach() left in `pin_directory` and on interfaces of the network namespaces.
  static Result<void> cleanup(const BpfDatapathOptions& options);
  /// Whether this process may load programs; an Error says what to do.
  static Result<void> probe_permission();
  /// Whether this kernel takes TCX (6.6+); an Error says why not.
  static Result<void> probe_tcx();

 private:
  struct State;
  static Result<BpfDatapath> open_with(const BpfDatapathOptions& options, Result<BpfObjects> objects);
  static Result<BpfDatapath> succeed(const BpfDatapathOptions& options);
  explicit BpfDatapath(std::unique_ptr<State> state);
  std::unique_ptr<State> state_;
};

}  // namespace te::agent
