// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <spdlog/common.h>

#include <cstdint>
#include <deque>
#include <map>
#include <memory>
#include <mutex>
#include <string>

#include "common/net/pace.h"
#include "te/v1/api.pb.h"

namespace te {

/// The newest events, for 'tectl events': what agents report, and what the controller logs for people. Any thread.
class EventLog {
 public:
  static constexpr std::size_t kKept = 2000;

  /// `wall_us`: when the program started; tells a client that numbers begin anew.
  explicit EventLog(std::int64_t wall_us) : started_s_(static_cast<double>(wall_us) * 1e-6) {}

  /// Of one source at most 20 a second are kept (200 at once), so that nobody pushes out what others had to say; the
  /// rest are counted. `source`: "te-controller", or a node that was accepted.
  void add(const std::string& source, const std::string& kind, const std::string& text, std::int64_t wall_us);
  /// The oldest first: those after `number`, of these the newest `limit`.
  [[nodiscard]] v1::EventList after(int number, std::size_t limit) const;

  /// Brings what is logged for people (info and above) here. It outlives the sink.
  [[nodiscard]] std::shared_ptr<spdlog::sinks::sink> sink();

 private:
  mutable std::mutex mutex_;
  std::deque<v1::EventView> events_;
  std::map<std::string, Pace> paces_;
  double started_s_;
  int last_ = 0;
  int left_out_ = 0;
};

}  // namespace te
