// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <map>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "common/netlink/link_message.h"
#include "te/v1/agent.pb.h"

namespace te::agent {

/// Network interfaces that the agent watches: as they are, and as the controller was last told. The newest state wins;
/// a carrier that went and came back unseen still shows in its count of changes.
class LinkBoard {
 public:
  /// `interfaces`: the names to watch, told even when there is no such interface; empty: all but the loopback.
  explicit LinkBoard(std::vector<std::string> interfaces);

  /// Most interfaces watched, as many as a controller keeps of a node; more are counted and left out.
  static constexpr std::size_t kMostLinks = 4096;

  /// Takes a list of all interfaces: those that it leaves out are gone.
  void take_all(std::span<const netlink::LinkMessage> links);
  /// Takes one interface as it is now; under a new name, the old one is gone.
  void take(const netlink::LinkMessage& link);
  void remove(std::uint32_t ifindex);

  /// Everything watched, as a complete update.
  [[nodiscard]] v1::LinkUpdate all() const;
  /// Those whose state (not counters) is another than the controller was told.
  [[nodiscard]] v1::LinkUpdate changes() const;
  /// The controller has what all() or changes() gives now.
  void mark_told();

  /// Interfaces watched that exist.
  [[nodiscard]] std::size_t present() const;
  /// Of these, the ones with a carrier.
  [[nodiscard]] std::size_t with_carrier() const;
  /// Losses of carrier, and removals of interfaces that had one, since the start.
  [[nodiscard]] std::uint64_t carrier_losses() const { return carrier_losses_; }
  /// Times that an interface beyond kMostLinks was left out.
  [[nodiscard]] std::uint64_t left_out() const { return left_out_; }

 private:
  /// What makes an update worth sending at once.
  struct State {
    std::uint32_t ifindex = 0;
    bool up = false;
    bool carrier = false;
    std::uint32_t carrier_changes = 0;
    bool operator==(const State&) const = default;
  };
  struct Entry {
    std::optional<netlink::LinkMessage> link;  // none: does not exist
    std::optional<State> told;
  };

  [[nodiscard]] bool watches(const std::string& name) const;
  [[nodiscard]] static State state_of(const Entry& entry);
  static void add_report(const std::string& name, const Entry& entry, v1::LinkUpdate& update);
  void clear(Entry& entry);
  void forget_untold();

  std::vector<std::string> interfaces_;
  std::map<std::string, Entry> entries_;
  std::uint64_t carrier_losses_ = 0;
  std::uint64_t left_out_ = 0;
};

}  // namespace te::agent
