// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <map>
#include <string>
#include <utility>

namespace te {

/// The connections of a listener, bounded so that nobody keeps others out: when it is full, the peer with the most
/// connections loses its oldest one to the newcomer.
class ConnectionTable {
 public:
  /// `most` is at least 1.
  explicit ConnectionTable(std::size_t most) : most_(most) {}

  /// Takes a connection in; returns its number. `close` ends it, and must not call back at once.
  std::uint64_t enter(const std::string& peer, std::function<void()> close) {
    if (connections_.size() >= most_) make_room();
    connections_.emplace(++last_, Connection{peer, std::move(close)});
    return last_;
  }
  /// It ended by itself, or was closed.
  void leave(std::uint64_t number) { connections_.erase(number); }
  void close_all() {
    for (const auto& [number, connection] : std::exchange(connections_, {})) connection.close();
  }
  [[nodiscard]] std::size_t size() const { return connections_.size(); }
  /// Closed to make room.
  [[nodiscard]] std::uint64_t displaced() const { return displaced_; }

 private:
  struct Connection {
    std::string peer;
    std::function<void()> close;
  };

  void make_room() {
    std::map<std::string, std::size_t> counts;
    std::size_t most = 0;
    for (const auto& [number, connection] : connections_) most = std::max(most, ++counts[connection.peer]);
    for (auto place = connections_.begin(); place != connections_.end(); ++place) {  // oldest first
      if (counts[place->second.peer] != most) continue;
      place->second.close();
      connections_.erase(place);
      ++displaced_;
      return;
    }
  }

  std::size_t most_;
  std::map<std::uint64_t, Connection> connections_;  ///< by number: the oldest first
  std::uint64_t last_ = 0;
  std::uint64_t displaced_ = 0;
};

}  // namespace te
