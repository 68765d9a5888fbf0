// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>
#include <cstdint>
#include <map>
#include <vector>

#include "te-controller/engine/flow.h"

namespace te {

/// Flows by id, in that order. Flows stay where they are in memory. Walking through all of them is far faster than
/// through a map; no flow may come or go meanwhile.
class FlowTable {
 public:
  using value_type = std::map<FlowId, Flow>::value_type;

  class Iterator {
   public:
    using value_type = FlowTable::value_type;
    using difference_type = std::ptrdiff_t;
    using iterator_category = std::forward_iterator_tag;
    Iterator() = default;
    explicit Iterator(std::vector<const value_type*>::const_iterator at) : at_(at) {}
    const value_type& operator*() const { return **at_; }
    const value_type* operator->() const { return *at_; }
    Iterator& operator++() {
      ++at_;
      return *this;
    }
    Iterator operator++(int) {
      const Iterator before = *this;
      ++at_;
      return before;
    }
    bool operator==(const Iterator&) const = default;

   private:
    std::vector<const value_type*>::const_iterator at_;
  };

  [[nodiscard]] std::size_t size() const { return flows_.size(); }
  [[nodiscard]] bool empty() const { return flows_.empty(); }
  [[nodiscard]] Iterator begin() const { return Iterator(in_order().begin()); }
  [[nodiscard]] Iterator end() const { return Iterator(in_order().end()); }
  /// Null when unknown.
  [[nodiscard]] const Flow* find(const FlowId& id) const {
    const auto found = flows_.find(id);
    return found == flows_.end() ? nullptr : &found->second;
  }
  [[nodiscard]] Flow* find(const FlowId& id) {
    const auto found = flows_.find(id);
    return found == flows_.end() ? nullptr : &found->second;
  }
  /// A flow that is not there yet.
  Flow& add(const FlowId& id) {
    ++version_;
    Flow& flow = flows_[id];
    flow.id = id;
    return flow;
  }
  void erase(const FlowId& id) { version_ += flows_.erase(id); }
  /// Differs after flows came or went.
  [[nodiscard]] std::uint64_t version() const { return version_; }

 private:
  [[nodiscard]] const std::vector<const value_type*>& in_order() const {
    if (order_version_ == version_) return order_;
    order_version_ = version_;
    order_.clear();
    order_.reserve(flows_.size());
    for (const value_type& flow : flows_) order_.push_back(&flow);
    return order_;
  }

  std::map<FlowId, Flow> flows_;
  std::uint64_t version_ = 0;
  mutable std::vector<const value_type*> order_;
  mutable std::uint64_t order_version_ = 0;
};

}  // namespace te
