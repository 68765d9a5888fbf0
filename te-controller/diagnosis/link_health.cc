// SPDX-License-Identifier: Apache-2.0
#include "te-controller/diagnosis/link_health.h"

#include <algorithm>
#include <array>
#include <cstdio>
#include <iterator>

namespace te::diagnosis {
namespace {

std::string percent(double share) {
  std::array<char, 32> text{};
  std::snprintf(text.data(), text.size(), "%.2g %%", share * 100);
  return text.data();
}

std::string plural(std::size_t count, const char* what) {
  return std::to_string(count) + " " + what + (count == 1 ? "" : "s");
}

}  // namespace

std::string_view to_string(LinkCondition condition) {
  switch (condition) {
    case LinkCondition::kUnknown:
      return "unknown";
    case LinkCondition::kHealthy:
      return "healthy";
    case LinkCondition::kSuspect:
      return "suspect";
    case LinkCondition::kFailing:
      return "failing";
    case LinkCondition::kDown:
      return "down";
    case LinkCondition::kFlapping:
      return "flapping";
  }
  return "unknown";
}

bool LinkHealth::carrier(PortId port, bool has_carrier) {
  const Port& of = fabric_->port(port);
  if (of.out == kNoId || links_[of.out].sender_carrier == has_carrier) return false;
  links_[of.out].sender_carrier = has_carrier;
  links_[of.in].receiver_carrier = has_carrier;
  if (has_carrier) links_[of.out].silences = links_[of.in].silences = 0;
  return true;
}

void LinkHealth::no_word(PortId port, std::int64_t now_ns) {
  const Port& of = fabric_->port(port);
  if (of.out == kNoId) return;
  const auto forget = [&](Track& track, std::optional<bool>& word) {
    if (word == false) {  // from now on it takes proof
      track.silences = kSilences;
      track.first_silence_ns = now_ns;
    }
    word.reset();
  };
  forget(links_[of.out], links_[of.out].sender_carrier);
  forget(links_[of.in], links_[of.in].receiver_carrier);
}

void LinkHealth::passed(LinkId link, std::int64_t now_ns) {
  Track& track = links_[link];
  track.passed_ns = now_ns;
  if (!is_silent(track)) track.silences = 0;
}

void LinkHealth::proved(LinkId link, std::int64_t now_ns) {
  Track& track = links_[link];
  track.passed_ns = track.proved_ns = now_ns;
  track.silences = 0;
  if (track.status.condition == LinkCondition::kDown) links_[fabric_->link(link).reverse].silences = 0;
}

void LinkHealth::silent(LinkId link, std::uint32_t probes, std::int64_t now_ns) {
  Track& track = links_[link];
  if (track.silences > 0 && !is_silent(track) && now_ns - track.first_silence_ns > kSilenceWindowNs) track.silences = 0;
  if (track.silences == 0) track.first_silence_ns = now_ns;
  track.silences += probes;
}

void LinkHealth::suspect(std::span<const LossSuspect> suspects, std::int64_t now_ns) {
  for (std::size_t begin = 0; begin < suspects.size();) {
    const std::uint32_t place = suspects[begin].place;
    std::size_t end = begin;
    while (end < suspects.size() && suspects[end].place == place) ++end;
    const auto all = suspects.subspan(begin, end - begin);
    const auto is_known = [&](const LossSuspect& one) { return losses(one.link, now_ns).has_value(); };
    const auto known = static_cast<std::size_t>(std::ranges::count_if(all, is_known));
    std::vector<LossSuspect> told;
    std::ranges::copy_if(all, std::back_inserter(told), [&](const auto& one) { return known == 0 || is_known(one); });
    for (const LossSuspect& one : told) suspect_one(one, told.size(), now_ns);
    begin = end;
  }
}

void LinkHealth::suspect_one(const LossSuspect& one, std::size_t candidates, std::int64_t now_ns) {
  Track& track = links_[one.link];
  const bool trusted = !losses(one.link, now_ns).has_value();
  if (trusted) {
    track.probation_ns = track.probation_ns == 0 ? kProbationNs : std::min(2 * track.probation_ns, kLongestProbationNs);
  }
  // A sign that leaves more candidates than the one before says less than that.
  if (trusted || candidates <= track.loss->candidates) {
    track.loss = one;
    track.loss->candidates = candidates;
  }
  track.loss_ns = now_ns;
}

void LinkHealth::clean(LinkId link) {
  Track& track = links_[link];
  if (track.loss && track.loss->candidates > 1) track.loss.reset();
}

void LinkHealth::forget_losses() {
  for (Track& track : links_) {
    track.loss.reset();
    track.probation_ns = 0;
  }
}

std::optional<LinkStatus> LinkHealth::losses(LinkId link, std::int64_t now_ns) const {
  const Track& track = links_[link];
  if (!track.loss || now_ns - track.loss_ns > track.probation_ns) return std::nullopt;
  LinkStatus status;
  const LossSuspect& loss = *track.loss;
  status.condition = loss.candidates == 1 ? LinkCondition::kFailing : LinkCondition::kSuspect;
  status.evidence = plural(loss.flows, "flow") + " over it lost " + percent(loss.loss) + " of the packets";
  if (loss.candidates > 1) {
    const std::size_t others = loss.candidates - 1;
    status.evidence += ", on this link or on " +
                       (others == 1 ? "another" : "one of " + std::to_string(others) + " others") +
                       " that the same flows cross";
  }
  return status;
}

bool LinkHealth::falls_with_reverse(LinkId link) const {
  const Track& track = links_[link];
  const Track& reverse = links_[fabric_->link(link).reverse];
  const bool word = track.sender_carrier.has_value() || track.receiver_carrier.has_value();
  return !word && is_silent(reverse) && track.proved_ns <= reverse.first_silence_ns;
}

std::string LinkHealth::why_down(LinkId link) const {
  const Track& track = links_[link];
  const Link& of = fabric_->link(link);
  if (track.sender_carrier == false) return "no carrier at " + fabric_->port_name(of.from_port);
  if (track.receiver_carrier == false) return "no carrier at " + fabric_->port_name(of.to_port);
  if (is_silent(track)) {
    return plural(track.silences, "probe") + " got as far as " + fabric_->node(of.from).name + " and not to " +
           fabric_->node(of.to).name;
  }
  if (falls_with_reverse(link)) return "the other direction is down, and nothing came through this one since";
  return {};
}

bool LinkHealth::needs_proof(LinkId link) const {
  const Track& track = links_[link];
  const bool word = track.sender_carrier == false || track.receiver_carrier == false;
  return !word && (is_silent(track) || falls_with_reverse(link));
}

LinkStatus LinkHealth::conclude(LinkId link, std::int64_t now_ns) {
  Track& track = links_[link];
  const bool was_down = track.status.condition == LinkCondition::kDown;
  std::erase_if(track.falls_ns, [&](std::int64_t fall) { return now_ns - fall > kFlapWindowNs; });
  LinkStatus status;
  if (std::string why = why_down(link); !why.empty()) {
    track.working_ns = 0;
    if (!was_down) track.falls_ns.push_back(now_ns);
    status.condition = LinkCondition::kDown;
    status.evidence = std::move(why);
    return status;
  }
  if (track.working_ns == 0) track.working_ns = now_ns;
  if (was_down && now_ns - track.working_ns < kHoldNs) return track.status;
  if (track.falls_ns.size() >= kFlaps) {
    status.condition = LinkCondition::kFlapping;
    status.evidence = "it went down " + std::to_string(track.falls_ns.size()) + " times within a minute";
    return status;
  }
  if (auto lossy = losses(link, now_ns)) return *std::move(lossy);
  if (track.sender_carrier || track.receiver_carrier || track.passed_ns != 0) {
    status.condition = LinkCondition::kHealthy;
  }
  return status;
}

std::vector<LinkId> LinkHealth::judge(std::int64_t now_ns) {
  std::vector<LinkId> changed;
  for (LinkId link = 0; link < links_.size(); ++link) {
    LinkStatus status = conclude(link, now_ns);
    LinkStatus& held = links_[link].status;
    const bool news = status.condition != held.condition;
    status.since_ns = news ? now_ns : held.since_ns;
    held = std::move(status);
    if (news) changed.push_back(link);
  }
  return changed;
}

}  // namespace te::diagnosis
