// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <optional>
#include <span>
#include <unordered_map>
#include <vector>

#include "host-agent/core/flow_key_hash.h"
#include "host-agent/core/flow_sample.h"

namespace te::agent {

/// One flow as the agent knows it. Ports as in FlowSample; rates in bits/s over the last closed window.
struct FlowRecord {
  FlowKey key;
  FlowDirection direction = FlowDirection::kEgress;
  std::uint16_t source_port = 0;
  std::uint16_t wire_port = 0;
  std::uint16_t steer_port = 0;
  std::uint32_t flow_label = 0;
  FlowCounters totals;  ///< never go backwards, even when the kernel's entry is made anew
  double rate_bps = 0;
  double payload_bps = 0;
  std::optional<std::uint32_t> local_qpn;   ///< absent: unknown
  std::optional<std::uint32_t> remote_qpn;  ///< absent: unknown
  bool ended = false;
  bool operator==(const FlowRecord&) const = default;
};

/// The flows of this host: readings of the kernel's counters become totals, rates and changes to report.
class FlowTable {
 public:
  struct Limits {
    std::int64_t idle_ns = 60'000'000'000;  ///< without a packet for so long a flow that is not steered may go
    std::size_t flows = 32768;              ///< more are counted and left out
  };
  /// Whether a reading ends the window that rates are taken over. An early reading keeps it: its rates would be noise.
  enum class Window : std::uint8_t { kKeep, kClose };

  FlowTable() : FlowTable(Limits{}) {}
  explicit FlowTable(Limits limits) : limits_(limits) {}

  /// Takes one reading of all flows in the kernel. A flow that two readings miss has ended.
  void update(std::span<const FlowSample> samples, Window window, std::int64_t now_ns);
  /// Flows without steering and without a packet for the idle time: to be erased from the kernel, then end()ed.
  [[nodiscard]] std::vector<FlowKey> idle(std::int64_t now_ns) const;
  /// Steered flows without a packet for `silent_ns`.
  [[nodiscard]] std::vector<FlowKey> steered_and_silent(std::int64_t silent_ns, std::int64_t now_ns) const;
  /// The flow is gone from the kernel; it is reported once more, as ended. An unknown flow is ignored.
  void end(const FlowKey& key);
  /// Sets what pairing found; an unknown flow is ignored.
  void set_qpns(const FlowKey& key, std::optional<std::uint32_t> local_qpn, std::optional<std::uint32_t> remote_qpn);

  /// Records that changed since mark_reported(), ended ones included; `complete`: all live ones and none that ended.
  [[nodiscard]] std::vector<FlowRecord> changes(bool complete) const;
  /// What changes() gives now has been handed to the controller.
  void mark_reported();

  [[nodiscard]] const FlowRecord* find(const FlowKey& key) const;
  [[nodiscard]] std::vector<FlowRecord> records() const;
  [[nodiscard]] std::size_t size() const { return flows_.size(); }
  /// Changes whenever a flow appears or ends: time to pair again.
  [[nodiscard]] std::uint64_t generation() const { return generation_; }
  /// Length of the last closed window in ns; 0 before the first.
  [[nodiscard]] std::int64_t window_ns() const { return window_ns_; }
  /// Flows left out because the table was full, summed over readings; and ended ones dropped before they were reported.
  [[nodiscard]] std::uint64_t left_out() const { return left_out_; }

 private:
  struct Entry {
    FlowRecord record;
    std::optional<FlowRecord> reported;
    FlowCounters kernel;         // as last read
    FlowCounters before_kernel;  // totals of kernel entries that are gone
    FlowCounters window_begin;   // totals when the open window began
    std::int64_t moved_ns = 0;   // last reading at which a counter had moved
    std::uint64_t reading = 0;   // last reading that had this flow
  };

  void take(const FlowSample& sample, std::int64_t now_ns);
  void close_window(std::int64_t now_ns);
  void end_missing();
  void retire(const FlowRecord& last);

  Limits limits_;
  std::unordered_map<FlowKey, Entry> flows_;
  std::vector<FlowRecord> ended_;
  std::uint64_t reading_ = 0;
  std::uint64_t generation_ = 0;
  std::uint64_t left_out_ = 0;
  std::int64_t window_begin_ns_ = 0;
  std::int64_t window_ns_ = 0;
};

}  // namespace te::agent
