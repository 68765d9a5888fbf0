// SPDX-License-Identifier: Apache-2.0
#include "te-controller/engine/active_rate.h"

#include <algorithm>

namespace te {

double active_rate(const FlowEnd& end, std::int64_t from_ns, std::size_t newest) {
  double fastest = 0;
  const std::size_t skip = end.history.size() > newest ? end.history.size() - newest : 0;
  const auto counts = [&](const RateSample& sample) {
    return sample.begin_ns + (sample.end_ns - sample.begin_ns) / 5 >= from_ns;
  };
  for (std::size_t i = skip; i < end.history.size(); ++i) {
    if (counts(end.history[i])) fastest = std::max(fastest, end.history[i].rate_bps);
  }
  double sum = 0;
  int samples = 0;
  for (std::size_t i = skip; i < end.history.size(); ++i) {
    if (!counts(end.history[i]) || end.history[i].rate_bps * 2 < fastest) continue;
    sum += end.history[i].rate_bps;
    ++samples;
  }
  return samples == 0 ? 0 : sum / samples;
}

bool bursty(const FlowEnd& end, std::size_t newest) {
  const std::size_t skip = end.history.size() > newest ? end.history.size() - newest : 0;
  double slowest = end.history.empty() ? 0 : end.history.back().rate_bps;
  double fastest = slowest;
  for (std::size_t i = skip; i < end.history.size(); ++i) {
    slowest = std::min(slowest, end.history[i].rate_bps);
    fastest = std::max(fastest, end.history[i].rate_bps);
  }
  return slowest * 2 < fastest;
}

std::size_t intervals_since(const FlowEnd& end, std::int64_t from_ns) {
  return static_cast<std::size_t>(std::ranges::count_if(end.history, [&](const RateSample& sample) {
    return sample.begin_ns + (sample.end_ns - sample.begin_ns) / 5 >= from_ns;
  }));
}

}  // namespace te
