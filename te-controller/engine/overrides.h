// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <map>
#include <optional>
#include <set>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "common/base/result.h"
#include "te-controller/engine/flow.h"
#include "te/v1/api.pb.h"
#include "topology/fabric.h"
#include "topology/routing.h"

namespace te {

/// What operators want otherwise than the controller would have it, each until a moment: links that are to take no
/// flows ("drain"; target: a switch, or a link by the port at one of its ends), and flows that stay where they are
/// ("pin"; target: a flow's id). What is forgotten ends by itself. Pure; times are seconds since 1970 by the wall
/// clock.
class Overrides {
 public:
  static constexpr const char* kDrain = "drain";
  static constexpr const char* kPin = "pin";

  /// Takes the place of an older one with its kind and target. `until_s` 0: until it is taken back.
  void set(v1::OverrideView one);
  /// An Error: there is none; says which there are.
  Result<void> erase(const std::string& kind, const std::string& target);
  /// Ends those whose time is over, and returns them.
  std::vector<v1::OverrideView> expire(double wall_s);
  /// Of several with one kind and target, the one that lasts longest.
  void restore(const std::vector<v1::OverrideView>& all);

  [[nodiscard]] const v1::OverrideView* find(const std::string& kind, const std::string& target) const;
  /// "pinned by bob: measuring it"; empty: it is not.
  [[nodiscard]] std::string why_pinned(const FlowId& flow) const;
  /// By kind and target.
  [[nodiscard]] std::vector<v1::OverrideView> all() const;
  /// All of them when any changed since the last call.
  std::optional<std::vector<v1::OverrideView>> take_changes();

 private:
  void has_changed();

  std::map<std::pair<std::string, std::string>, v1::OverrideView> held_;
  std::size_t pins_ = 0;
  bool changed_ = false;
};

/// `one` ends later than `other`.
[[nodiscard]] bool lasts_longer(const v1::OverrideView& one, const v1::OverrideView& other);

/// Both directions of what a drain's target names: all links of a switch ("spine1"), or one cable between switches
/// ("leaf1:spine2", the node and port at either end). Errors: nothing has that name; it is a host or a host's cable,
/// whose flows have no other way.
[[nodiscard]] Result<std::set<LinkId>> links_to_drain(const Fabric& fabric, std::string_view target);

/// The one name of what a drain's target names: a cable by the end that sorts first; else as it is.
[[nodiscard]] std::string drain_name(const Fabric& fabric, std::string_view target);

/// Two hosts between which all equal-cost ways would go over `drained` or other links that take no flows, while one way
/// is open now: "h1 -> h5"; empty: none.
[[nodiscard]] std::string cut_off_by(Routing& routing, const std::set<LinkId>& drained);

/// "drained by alice for 30 min more: new optics", "pinned by bob until it is taken back".
[[nodiscard]] std::string describe(const v1::OverrideView& one, double wall_s);

}  // namespace te
