// SPDX-License-Identifier: Apache-2.0
#include "host-agent/core/flow_table.h"

#include <algorithm>
#include <array>

namespace te::agent {
namespace {

constexpr std::array kFields = {
    &FlowCounters::packets,           &FlowCounters::bytes,       &FlowCounters::payload_bytes,
    &FlowCounters::ecn_ce_packets,    &FlowCounters::cnp_packets, &FlowCounters::ack_packets,
    &FlowCounters::nak_sequence,      &FlowCounters::nak_rnr,     &FlowCounters::nak_other,
    &FlowCounters::duplicate_packets, &FlowCounters::psn_gaps,    &FlowCounters::reordered_packets,
    &FlowCounters::steered_packets};
static_assert(sizeof(FlowCounters) == kFields.size() * sizeof(std::uint64_t), "a counter is missing from kFields");

FlowCounters sum(FlowCounters left, const FlowCounters& right) {
  for (const auto field : kFields) left.*field += right.*field;
  return left;
}

bool went_backwards(const FlowCounters& before, const FlowCounters& now) {
  return std::any_of(kFields.begin(), kFields.end(), [&](const auto field) { return now.*field < before.*field; });
}

double bits_per_second(std::uint64_t bytes, std::int64_t interval_ns) {
  return static_cast<double>(bytes) * 8e9 / static_cast<double>(interval_ns);
}

}  // namespace

void FlowTable::update(std::span<const FlowSample> samples, Window window, std::int64_t now_ns) {
  ++reading_;
  if (reading_ == 1) window_begin_ns_ = now_ns;
  for (const FlowSample& sample : samples) take(sample, now_ns);
  end_missing();
  if (window == Window::kClose && now_ns > window_begin_ns_) close_window(now_ns);
}

void FlowTable::take(const FlowSample& sample, std::int64_t now_ns) {
  auto found = flows_.find(sample.key);
  const bool is_new = found == flows_.end();
  if (is_new) {
    if (flows_.size() >= limits_.flows) {
      ++left_out_;
      return;
    }
    found = flows_.try_emplace(sample.key).first;
    ++generation_;
  }
  Entry& entry = found->second;
  if (went_backwards(entry.kernel, sample.counters)) entry.before_kernel = sum(entry.before_kernel, entry.kernel);
  if (is_new || entry.kernel != sample.counters) entry.moved_ns = now_ns;
  entry.kernel = sample.counters;
  entry.reading = reading_;
  FlowRecord& record = entry.record;
  record.key = sample.key;
  record.direction = sample.direction;
  record.source_port = sample.source_port;
  record.wire_port = sample.wire_port;
  record.steer_port = sample.steer_port;
  record.flow_label = sample.flow_label;
  record.totals = sum(entry.before_kernel, sample.counters);
  // Counters adopted from an earlier agent say nothing about the time since this one started.
  if (is_new && reading_ == 1) entry.window_begin = record.totals;
}

void FlowTable::close_window(std::int64_t now_ns) {
  window_ns_ = now_ns - window_begin_ns_;
  window_begin_ns_ = now_ns;
  for (auto& [key, entry] : flows_) {
    FlowRecord& record = entry.record;
    record.rate_bps = bits_per_second(record.totals.bytes - entry.window_begin.bytes, window_ns_);
    record.payload_bps = bits_per_second(record.totals.payload_bytes - entry.window_begin.payload_bytes, window_ns_);
    entry.window_begin = record.totals;
  }
}

void FlowTable::end_missing() {
  for (auto it = flows_.begin(); it != flows_.end();) {
    if (it->second.reading + 2 <= reading_) {
      retire(it->second.record);
      it = flows_.erase(it);
    } else {
      ++it;
    }
  }
}

void FlowTable::retire(const FlowRecord& last) {
  ++generation_;
  FlowRecord record = last;
  record.ended = true;
  record.rate_bps = 0;
  record.payload_bps = 0;
  if (ended_.size() >= limits_.flows) {
    ++left_out_;
    return;
  }
  ended_.push_back(record);
}

std::vector<FlowKey> FlowTable::idle(std::int64_t now_ns) const {
  std::vector<FlowKey> keys;
  for (const auto& [key, entry] : flows_) {
    if (entry.record.steer_port == 0 && now_ns - entry.moved_ns >= limits_.idle_ns) keys.push_back(key);
  }
  return keys;
}

std::vector<FlowKey> FlowTable::steered_and_silent(std::int64_t silent_ns, std::int64_t now_ns) const {
  std::vector<FlowKey> keys;
  for (const auto& [key, entry] : flows_) {
    if (entry.record.steer_port != 0 && now_ns - entry.moved_ns >= silent_ns) keys.push_back(key);
  }
  return keys;
}

void FlowTable::end(const FlowKey& key) {
  const auto found = flows_.find(key);
  if (found == flows_.end()) return;
  retire(found->second.record);
  flows_.erase(found);
}

void FlowTable::set_qpns(const FlowKey& key, std::optional<std::uint32_t> local_qpn,
                         std::optional<std::uint32_t> remote_qpn) {
  const auto found = flows_.find(key);
  if (found == flows_.end()) return;
  found->second.record.local_qpn = local_qpn;
  found->second.record.remote_qpn = remote_qpn;
}

std::vector<FlowRecord> FlowTable::changes(bool complete) const {
  std::vector<FlowRecord> changed;
  if (!complete) changed = ended_;
  for (const auto& [key, entry] : flows_) {
    if (complete || entry.reported != entry.record) changed.push_back(entry.record);
  }
  return changed;
}

void FlowTable::mark_reported() {
  ended_.clear();
  for (auto& [key, entry] : flows_) {
    if (entry.reported != entry.record) entry.reported = entry.record;
  }
}

const FlowRecord* FlowTable::find(const FlowKey& key) const {
  const auto found = flows_.find(key);
  return found == flows_.end() ? nullptr : &found->second.record;
}

std::vector<FlowRecord> FlowTable::records() const { return changes(true); }

}  // namespace te::agent
