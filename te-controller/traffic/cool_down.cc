// SPDX-License-Identifier: Apache-2.0
#include "te-controller/traffic/cool_down.h"

#include <algorithm>

namespace te::traffic {

void CoolDown::hold(State& state, std::int64_t now_ns) const {
  const std::uint32_t doublings = std::min(state.roll_backs, kMostDoublings);
  state.until_ns = std::max(state.until_ns, now_ns + period_ns_ * (std::int64_t{1} << doublings));
}

void CoolDown::moved(const std::string& flow, std::int64_t now_ns) { hold(flows_[flow], now_ns); }

void CoolDown::rolled_back(const std::string& flow, std::int64_t now_ns) {
  State& state = flows_[flow];
  ++state.roll_backs;
  hold(state, now_ns);
}

void CoolDown::verified(const std::string& flow) {
  const auto found = flows_.find(flow);
  if (found != flows_.end()) found->second.roll_backs = 0;
}

std::int64_t CoolDown::left_ns(const std::string& flow, std::int64_t now_ns) const {
  const auto found = flows_.find(flow);
  return found == flows_.end() ? 0 : std::max<std::int64_t>(0, found->second.until_ns - now_ns);
}

void CoolDown::prune(std::int64_t now_ns) {
  const std::int64_t longest_ns = period_ns_ * (std::int64_t{1} << kMostDoublings);
  std::erase_if(flows_, [&](const auto& item) { return now_ns - item.second.until_ns >= longest_ns; });
}

}  // namespace te::traffic
