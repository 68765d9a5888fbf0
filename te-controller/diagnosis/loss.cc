// SPDX-License-Identifier: Apache-2.0
#include "te-controller/diagnosis/loss.h"

#include <algorithm>
#include <map>
#include <set>

namespace te::diagnosis {
namespace {

double share(const FlowLoss& flow) {
  return static_cast<double>(flow.gaps) / static_cast<double>(std::max<std::uint64_t>(1, flow.packets + flow.gaps));
}

bool loses(const FlowLoss& flow, const LossLimits& limits) {
  return flow.gaps >= limits.least_gaps && share(flow) >= limits.least_loss;
}

bool is_clean(const FlowLoss& flow, const LossLimits& limits) {
  return flow.packets >= limits.clean_packets && share(flow) < limits.least_loss / LossLimits::kCleanFactor;
}

}  // namespace

std::set<LinkId> find_clean_links(const std::vector<FlowLoss>& flows, const LossLimits& limits) {
  std::set<LinkId> clean;
  for (const FlowLoss& flow : flows) {
    if (is_clean(flow, limits)) clean.insert(flow.links.begin(), flow.links.end());
  }
  return clean;
}

std::vector<LossSuspect> find_loss_suspects(const std::vector<FlowLoss>& flows, const LossLimits& limits) {
  const std::set<LinkId> clean = find_clean_links(flows, limits);
  std::map<LinkId, std::set<std::size_t>> losing_on;  // by link: flows that lose packets and cross it
  std::set<std::size_t> unexplained;
  for (std::size_t i = 0; i < flows.size(); ++i) {
    if (!loses(flows[i], limits)) continue;
    unexplained.insert(i);
    for (const LinkId link : flows[i].links) losing_on[link].insert(i);
  }
  std::erase_if(losing_on, [&](const auto& entry) { return clean.contains(entry.first); });
  std::vector<LossSuspect> suspects;
  std::uint32_t place = 0;
  while (!unexplained.empty() && !losing_on.empty()) {
    const auto best = std::ranges::max_element(losing_on, {}, [](const auto& entry) { return entry.second.size(); });
    const std::set<std::size_t> explained = best->second;
    if (explained.empty()) break;
    double loss = 0;
    for (const std::size_t flow : explained) loss += share(flows[flow]) / static_cast<double>(explained.size());
    std::vector<LinkId> alike;
    for (const auto& [link, losing] : losing_on) {
      if (losing == explained) alike.push_back(link);
    }
    ++place;
    for (const LinkId link : alike) {
      suspects.push_back(
          {.link = link, .place = place, .candidates = alike.size(), .flows = explained.size(), .loss = loss});
      losing_on.erase(link);
    }
    for (const std::size_t flow : explained) {
      unexplained.erase(flow);
      for (auto& [link, losing] : losing_on) losing.erase(flow);
    }
  }
  return suspects;
}

}  // namespace te::diagnosis
