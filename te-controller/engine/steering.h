// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <map>
#include <optional>
#include <set>
#include <string>
#include <vector>

#include "common/base/result.h"
#include "te-controller/engine/flow.h"
#include "te-controller/engine/persistent_state.h"
#include "te-controller/engine/prober.h"

namespace te {

/// A flow at its sender, as a steering entry names it.
struct SteeringKey {
  FlowId flow;
  std::uint32_t ifindex = 0;
  auto operator<=>(const SteeringKey&) const = default;
};

/// What shall be steered on each node (desired) and what its agent says it holds (programmed). Sets go out whole, with
/// a growing revision. Pure.
class Steering {
 public:
  /// `first_revision`: above that of every earlier run, as agents keep the newest.
  explicit Steering(std::uint64_t first_revision) : next_revision_(first_revision) {}

  /// Desired sets of an earlier run. Until a node's agent says what is in force they are not sent.
  void restore(const std::map<std::string, v1::SteeringSet>& sets);
  /// First session of a node in this run: what is in force is adopted, and nothing is sent. Later ones, and nodes
  /// cleared by clear_all(): what is desired is sent where it differs. An Error: malformed, nothing has changed.
  Result<void> connected(const std::string& node, const v1::Hello& hello);

  void set(const std::string& node, const SteeringKey& key, std::uint16_t port);
  void erase(const std::string& node, const SteeringKey& key);
  /// Takes all steering back, on every node, connected now or later.
  void clear_all();

  [[nodiscard]] std::optional<std::uint16_t> desired(const std::string& node, const SteeringKey& key) const;
  [[nodiscard]] const std::map<SteeringKey, std::uint16_t>& desired(const std::string& node) const;
  [[nodiscard]] std::size_t size() const;
  /// Revision of the node's newest set; the one that holds what set() and erase() asked for so far, once taken.
  [[nodiscard]] std::uint64_t revision(const std::string& node) const;

  /// Sets to send now to nodes for which `connected` holds.
  std::vector<Outgoing> take_outgoing(const std::set<std::string>& connected);
  /// Sets to store, changed since the last call.
  std::map<std::string, v1::SteeringSet> take_changes();

 private:
  struct NodeState {
    std::map<SteeringKey, std::uint16_t> desired;
    std::uint64_t revision = 0;
    bool adopted = false;  ///< an agent told what is in force, or clear_all() decided
    bool unsent = false;
    bool unstored = false;
  };
  void changed(NodeState& state);
  [[nodiscard]] static v1::SteeringSet make_set(const NodeState& state);

  std::map<std::string, NodeState> nodes_;
  std::uint64_t next_revision_;
  bool cleared_ = false;
};

/// Reads one entry; an Error for a malformed key or a port outside of 0xC000..0xFFFF.
Result<std::pair<SteeringKey, std::uint16_t>> parse_steering_entry(const v1::SteeringEntry& entry);

}  // namespace te
