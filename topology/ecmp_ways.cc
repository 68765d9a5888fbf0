// SPDX-License-Identifier: Apache-2.0
// Ways of EcmpKnowledge that are kept, since they are asked for far more often than anything is learned.
#include <algorithm>

#include "topology/ecmp_knowledge.h"

namespace te {
namespace {

constexpr std::size_t kPortsKept = 1024;  // of a pair; then its ways are composed anew
constexpr std::size_t kPairsKept = std::size_t{1} << 17;

}  // namespace

void EcmpKnowledge::drop_ways() {
  ways_.clear();
  last_ways_ = nullptr;
}

EcmpKnowledge::Ways& EcmpKnowledge::ways_of(const AddressPair& pair) {
  if (last_ways_ != nullptr && last_ways_->first == pair) return last_ways_->second;
  if (ways_.size() >= kPairsKept) drop_ways();
  last_ways_ = &*ways_.try_emplace(pair).first;
  return last_ways_->second;
}

std::uint64_t EcmpKnowledge::version_of(const AddressPair& pair) {
  follow_fabric();
  const PairState* state = find(pair);
  return std::max(all_changed_, state == nullptr ? 0 : state->changed);
}

const ComposedPath& EcmpKnowledge::way(const AddressPair& pair, std::uint16_t port) {
  follow_fabric();
  Ways& ways = ways_of(pair);
  if (ways.as_of != changes_) {
    if (ways.as_of < version_of(pair) || ways.ports.size() > kPortsKept) {
      ways.ports.clear();
      ways.paths.clear();
    }
    ways.as_of = changes_;
  }
  const auto kept = std::find(ways.ports.begin(), ways.ports.end(), port);
  if (kept != ways.ports.end()) return ways.paths[static_cast<std::size_t>(kept - ways.ports.begin())];
  ways.ports.push_back(port);
  return ways.paths.emplace_back(compose(pair, port));
}

}  // namespace te
