// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>
#include <cstdint>
#include <unordered_map>
#include <vector>

#include "te-controller/engine/flow.h"

namespace te {

/// Ends of flows that one node reports. An agent names them in much the same order each time, so each is looked for
/// behind the one found before.
class OwnedEnds {
 public:
  struct End {
    Flow* flow = nullptr;
    bool egress = false;
    [[nodiscard]] bool is(const FlowEndId& end) const { return egress == end.egress && flow->id == end.id; }
    [[nodiscard]] FlowEndId id() const { return {.id = flow->id, .egress = egress}; }
  };

  [[nodiscard]] std::size_t size() const { return ends_.size(); }
  [[nodiscard]] bool empty() const { return ends_.empty(); }
  [[nodiscard]] auto begin() const { return ends_.begin(); }
  [[nodiscard]] auto end() const { return ends_.end(); }

  /// Null when it is none of them.
  Flow* find(const FlowEndId& end) {
    if (next_ >= ends_.size()) next_ = 0;
    if (next_ >= ends_.size() || !ends_[next_].is(end)) {
      const auto place = places_.find(end);
      if (place == places_.end()) return nullptr;
      next_ = place->second;
    }
    fetch_ahead();
    return ends_[next_++].flow;
  }
  /// One that is not there yet.
  void add(const FlowEndId& end, Flow& flow) {
    places_.emplace(end, static_cast<std::uint32_t>(ends_.size()));
    ends_.push_back({.flow = &flow, .egress = end.egress});
  }
  void erase(const FlowEndId& end) {
    const auto place = places_.find(end);
    if (place == places_.end()) return;
    const std::uint32_t at = place->second;
    places_.erase(place);
    if (at + 1U < ends_.size()) {
      ends_[at] = ends_.back();
      places_[ends_[at].id()] = at;
    }
    ends_.pop_back();
  }

 private:
  /// Of many flows each lies in memory that no cache holds: the one after next is asked for while this one is read.
  void fetch_ahead() const {
    constexpr std::size_t kAhead = 3;
    constexpr std::size_t kLineBytes = 64;
    if (next_ + kAhead >= ends_.size()) return;
    const End& later = ends_[next_ + kAhead];
    const auto* const flow = reinterpret_cast<const char*>(later.flow);
    __builtin_prefetch(flow, 1);
    const auto* const end = reinterpret_cast<const char*>(later.egress ? &later.flow->egress : &later.flow->ingress);
    for (std::size_t line = 0; line < sizeof(FlowEnd); line += kLineBytes) __builtin_prefetch(end + line, 1);
  }

  std::vector<End> ends_;
  std::unordered_map<FlowEndId, std::uint32_t> places_;
  std::size_t next_ = 0;
};

}  // namespace te
