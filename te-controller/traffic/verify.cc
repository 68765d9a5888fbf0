// SPDX-License-Identifier: Apache-2.0
#include "te-controller/traffic/verify.h"

#include <algorithm>
#include <vector>

#include "common/base/units.h"

namespace te::traffic {
namespace {

bool active(const RateChange& flow, const VerifyLimits& limits) {
  return flow.before_bps >= limits.idle_bps && flow.after_bps >= limits.idle_bps;
}

/// Median change of the flows the move had no part in; 1 when none was active throughout.
double common_change(std::span<const RateChange> untouched, const VerifyLimits& limits) {
  std::vector<double> changes;
  for (const RateChange& flow : untouched) {
    if (active(flow, limits)) changes.push_back(flow.after_bps / flow.before_bps);
  }
  if (changes.empty()) return 1;
  const auto middle = changes.begin() + static_cast<std::ptrdiff_t>(changes.size() / 2);
  std::nth_element(changes.begin(), middle, changes.end());
  return *middle;
}

/// True when most flows that were active before have stopped: the job pauses.
bool paused(std::span<const RateChange> flows, const VerifyLimits& limits) {
  std::size_t before = 0;
  std::size_t stopped = 0;
  for (const RateChange& flow : flows) {
    if (flow.before_bps < limits.idle_bps) continue;
    ++before;
    if (flow.after_bps < limits.idle_bps) ++stopped;
  }
  return before > 0 && 2 * stopped > before;
}

std::string change_text(const RateChange& flow) {
  return format_rate_bps(flow.before_bps) + " before, " + format_rate_bps(flow.after_bps) + " after";
}

Judgement judge_rates(const MoveObservation& seen, const VerifyLimits& limits) {
  RateChange slowest = seen.moved;
  for (const RateChange& flow : seen.affected) {
    if (!active(flow, limits)) continue;
    slowest.before_bps = std::min(slowest.before_bps, flow.before_bps);
    slowest.after_bps = std::min(slowest.after_bps, flow.after_bps);
  }
  const double expected_bps = slowest.before_bps * common_change(seen.untouched, limits);
  const bool worse = slowest.after_bps < expected_bps * (1 - limits.tolerance);
  std::string text =
      "flow: " + change_text(seen.moved) + "; slowest of those it shares links with: " + change_text(slowest);
  if (worse) text += "; untouched flows make one expect " + format_rate_bps(expected_bps);
  return {worse ? Verdict::kWorse : Verdict::kVerified, worse, std::move(text)};
}

}  // namespace

Judgement judge_move(const MoveObservation& seen, const VerifyLimits& limits) {
  if (seen.path_as_planned == false)
    return {Verdict::kWorse, true, "a probe of the new port went another way than planned"};
  if (!seen.port_seen.value_or(false))
    return {Verdict::kInconclusive, false, "the new port has not been seen on the wire yet"};
  if (seen.moved.after_bps < limits.idle_bps) {
    const bool alone =
        seen.moved.before_bps >= limits.idle_bps && !seen.untouched.empty() && !paused(seen.untouched, limits);
    return {
        Verdict::kInconclusive, alone,
        alone ? "the flow stopped while others go on: it pauses, or its new path carries nothing" : "the flow is idle"};
  }
  if (seen.moved.before_bps < limits.idle_bps) {
    return {Verdict::kVerified, false, "the flow was idle before and gets " + format_rate_bps(seen.moved.after_bps)};
  }
  if (paused(seen.untouched, limits))
    return {Verdict::kInconclusive, false, "most other flows stopped: the job pauses"};
  return judge_rates(seen, limits);
}

}  // namespace te::traffic
