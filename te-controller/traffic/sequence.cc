// SPDX-License-Identifier: Apache-2.0
#include "te-controller/traffic/sequence.h"

#include <algorithm>
#include <utility>

namespace te::traffic {
namespace {

/// Waiting moves are looked at again after each; of many, after every 64th part of them.
constexpr std::size_t kLooks = 64;
constexpr double kRounding = 1 + 1e-9;

class Sequencer {
 public:
  Sequencer(const Problem& problem, const Placement& now, const Placement& goal)
      : problem_(problem), goal_(goal), work_(now) {}

  std::vector<std::uint32_t> run(std::size_t most) {
    for (std::uint32_t unit = 0; unit < problem_.units(); ++unit) {
      if (goal_.option(unit) == work_.option(unit)) continue;
      if (work_.option(unit) != kNoOption) {
        waiting_.push_back(unit);
      } else {
        make(unit);  // whatever the budget
      }
    }
    const double slowest_bps = work_.slowest_bps();
    worst_ = slowest_bps > 0 ? 1 / slowest_bps : 0;
    while (order_.size() < most && !waiting_.empty()) look(most);
    return std::move(order_);
  }

 private:
  struct Outlook {
    std::uint32_t unit = 0;
    double relieved = 0;  ///< congestion of the worst link it leaves
    double entered = 0;   ///< congestion of the worst link it enters, with it
  };

  [[nodiscard]] Outlook outlook(std::uint32_t unit) const {
    const auto from = problem_.varying(work_.option(unit));
    const auto to = problem_.varying(goal_.option(unit));
    Outlook found{unit, 0, 0};
    for (const LinkId link : from) {
      if (std::find(to.begin(), to.end(), link) != to.end()) continue;
      found.relieved = std::max(found.relieved, work_.flows(link) * problem_.inverse_capacity[link]);
    }
    for (const LinkId link : to) {
      if (std::find(from.begin(), from.end(), link) != from.end()) continue;
      found.entered = std::max(found.entered, (work_.flows(link) + 1) * problem_.inverse_capacity[link]);
    }
    return found;
  }

  void make(std::uint32_t unit) {
    work_.put(unit, goal_.option(unit));
    order_.push_back(unit);
  }

  void look(std::size_t most) {
    std::vector<Outlook> safe;
    Outlook least_bad;
    for (const std::uint32_t unit : waiting_) {
      const Outlook seen = outlook(unit);
      if (seen.entered <= worst_ * kRounding) safe.push_back(seen);
      if (unit == waiting_.front() || seen.entered < least_bad.entered) least_bad = seen;
    }
    std::sort(safe.begin(), safe.end(), [](const Outlook& a, const Outlook& b) {
      if (a.relieved != b.relieved) return a.relieved > b.relieved;
      return a.entered != b.entered ? a.entered < b.entered : a.unit < b.unit;
    });
    if (safe.empty()) {
      make(least_bad.unit);
    } else {
      const std::size_t at_once = 1 + waiting_.size() / kLooks;
      const std::size_t until = std::min(most, order_.size() + at_once);
      for (std::size_t i = 0; i < safe.size() && order_.size() < until; ++i) {
        const Outlook again = outlook(safe[i].unit);
        const bool still = again.relieved >= safe[i].relieved && again.entered <= worst_ * kRounding;
        if (i == 0 || still) make(safe[i].unit);
      }
    }
    std::erase_if(waiting_, [&](std::uint32_t unit) { return work_.option(unit) == goal_.option(unit); });
  }

  const Problem& problem_;
  const Placement& goal_;
  Placement work_;
  double worst_ = 0;
  std::vector<std::uint32_t> waiting_;
  std::vector<std::uint32_t> order_;
};

}  // namespace

std::vector<std::uint32_t> sequence(const Problem& problem, const Placement& now, const Placement& goal,
                                    std::size_t most) {
  return Sequencer(problem, now, goal).run(most);
}

}  // namespace te::traffic
