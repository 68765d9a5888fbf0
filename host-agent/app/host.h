// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "host-agent/core/agent_config.h"
#include "host-agent/core/flow_table.h"
#include "host-agent/core/qp_reuse.h"
#include "host-agent/core/source_board.h"
#include "host-agent/core/steering_reconciler.h"
#include "host-agent/io/bpf_datapath.h"
#include "host-agent/io/net_namespaces.h"
#include "host-agent/io/nic_ports.h"
#include "host-agent/io/qp_source.h"

namespace te::agent {

/// This host as the agent sees and steers it: kernel programs, flows, queue pairs, NIC ports. It waits for nothing; who
/// calls it decides when.
class Host {
 public:
  struct Counts {
    std::uint64_t readings = 0;
    std::uint64_t reading_failures = 0;
    std::uint64_t kernel_events = 0;
    std::uint64_t steering_actions = 0;
    std::uint64_t steering_failures = 0;
    std::uint64_t steering_idle_dropped = 0;
    std::uint64_t steering_reused_dropped = 0;
  };

  /// Loads or adopts the kernel programs and attaches them where the interfaces exist. An Error when they cannot be
  /// loaded.
  static Result<std::unique_ptr<Host>> open(const AgentConfig& config, NetNamespaces& namespaces);

  /// Reads all flows; a closed window also looks after the QP source and idle flows.
  void read(FlowTable::Window window, std::int64_t now_ns);
  /// Looks after interfaces: tells which links went up or down; attaches to new ones, and every 10 s to all again,
  /// should somebody have taken our programs away.
  void check_ports(std::int64_t now_ns);
  /// Takes the programs off the interfaces of a namespace that ended, before the agent leaves it.
  void leave(const std::string& netns);
  /// Sets and clears what the controller's wish asks for; true when anything was tried.
  bool apply_steering(std::int64_t now_ns);
  /// Whether a flow that was steered less than a second ago has not sent by its new port yet: its next packets will
  /// show.
  [[nodiscard]] bool is_settling(std::int64_t now_ns) const;
  /// Takes the kernel's waiting events; true when one asks for an early reading.
  bool drain_events();

  /// Events to tell the controller, once.
  [[nodiscard]] std::vector<v1::AgentEvent> take_events() { return std::exchange(events_, {}); }
  /// Where packets from an address of this host leave it; none: it is no address of its NICs.
  struct WayOut {
    std::string netns;
    std::uint32_t ifindex = 0;  ///< of the interface that has the address, perhaps a VLAN of the NIC
  };
  [[nodiscard]] std::optional<WayOut> way_out(const IpAddress& address) const;

  FlowTable& flows() { return flows_; }
  SteeringReconciler& steering() { return steering_; }
  SourceBoard& sources() { return sources_; }
  [[nodiscard]] const std::vector<NicPort>& ports() const { return ports_; }
  [[nodiscard]] const Counts& counts() const { return counts_; }
  [[nodiscard]] const BpfDatapath::Losses& losses() const { return losses_; }
  [[nodiscard]] int event_fd() const { return datapath_.event_fd(); }

 private:
  Host(const AgentConfig& config, NetNamespaces& namespaces, BpfDatapath datapath);

  void release_others();
  void attach_all();
  Result<AttachMode> attach(const NicPort& port);
  void poll_queue_pairs(std::int64_t now_ns);
  void pair();
  void erase_idle(std::int64_t now_ns);
  void drop_idle_steering(std::int64_t now_ns);
  void drop_steering_of_reused_qps();
  bool drop_steering(const FlowKey& key, Release why);
  void note_source(const std::string& name, v1::Source::State state, const std::string& reason);
  v1::AgentEvent& add_event(const std::string& kind);

  const AgentConfig& config_;
  NetNamespaces& namespaces_;
  BpfDatapath datapath_;
  std::unique_ptr<QpSource> qp_source_;
  FlowTable flows_;
  SteeringReconciler steering_;
  SourceBoard sources_;
  std::vector<QueuePair> queue_pairs_;
  std::optional<std::uint64_t> paired_generation_;
  QpReuse qp_reuse_;
  std::optional<std::uint64_t> reuse_checked_;  // generation of the steering; none: paired anew since
  std::vector<NicPort> ports_;
  BpfDatapath::Losses losses_;
  Counts counts_;
  std::int64_t steered_ns_ = 0;
  std::int64_t attached_ns_ = 0;
  bool others_released_ = false;  ///< since the interfaces were last other ones
  std::vector<v1::AgentEvent> events_;
};

/// Where a node's programs are pinned: no '.' is allowed in a name on a bpffs.
[[nodiscard]] std::string pin_directory(const AgentConfig& config);
/// What loads programs and takes them away, for all namespaces.
[[nodiscard]] BpfDatapathOptions datapath_options(const AgentConfig& config, NetNamespaces& namespaces);

}  // namespace te::agent
