// SPDX-License-Identifier: Apache-2.0
#include "te-controller/app/event_log.h"

#include <spdlog/details/log_msg.h>
#include <spdlog/sinks/base_sink.h>

#include <algorithm>
#include <chrono>
#include <utility>

#include "common/os/clock.h"

namespace te {
namespace {

constexpr double kEventsPerS = 20;
constexpr double kEventsAtOnce = 200;
constexpr const char* kOurs = "te-controller";

class EventSink final : public spdlog::sinks::base_sink<std::mutex> {
 public:
  explicit EventSink(EventLog& events) : events_(&events) { set_level(spdlog::level::info); }

 private:
  void sink_it_(const spdlog::details::log_msg& message) override {
    const auto level = spdlog::level::to_string_view(message.level);
    const auto wall_us = std::chrono::duration_cast<std::chrono::microseconds>(message.time.time_since_epoch()).count();
    events_->add(kOurs, {level.data(), level.size()}, {message.payload.data(), message.payload.size()}, wall_us);
  }
  void flush_() override {}

  EventLog* events_;
};

}  // namespace

void EventLog::add(const std::string& source, const std::string& kind, const std::string& text, std::int64_t wall_us) {
  const std::lock_guard held(mutex_);
  Pace& pace = paces_.try_emplace(source, kEventsPerS, kEventsAtOnce).first->second;
  if (!pace.try_take(1, monotonic_ns())) {
    ++left_out_;
    return;
  }
  v1::EventView& event = events_.emplace_back();
  event.set_number(++last_);
  event.set_wall_s(static_cast<double>(wall_us) * 1e-6);
  event.set_source(source);
  event.set_kind(kind);
  event.set_text(text);
  if (events_.size() > kKept) events_.pop_front();
}

v1::EventList EventLog::after(int number, std::size_t limit) const {
  const std::lock_guard held(mutex_);
  v1::EventList list;
  list.set_started_s(started_s_);
  list.set_last(last_);
  list.set_left_out(left_out_);
  auto first = std::partition_point(events_.begin(), events_.end(),
                                    [&](const v1::EventView& event) { return event.number() <= number; });
  const auto found = static_cast<std::size_t>(events_.end() - first);
  if (found > limit) first += static_cast<std::ptrdiff_t>(found - limit);
  for (; first != events_.end(); ++first) *list.add_events() = *first;
  return list;
}

std::shared_ptr<spdlog::sinks::sink> EventLog::sink() { return std::make_shared<EventSink>(*this); }

}  // namespace te
