// SPDX-License-Identifier: Apache-2.0
#include "lab/faults.h"

#include <fmt/format.h>
#include <net/if.h>
#include <poll.h>
#include <sys/ioctl.h>
#include <sys/socket.h>
#include <unistd.h>

#include <algorithm>
#include <cstring>
#include <filesystem>
#include <optional>

#include "common/base/units.h"
#include "common/netlink/link_socket.h"
#include "common/os/clock.h"
#include "common/os/file.h"
#include "common/os/unique_fd.h"
#include "lab/commands.h"
#include "lab/netns.h"
#include "lab/process.h"
#include "lab/state.h"

namespace te::lab {
namespace {

namespace fs = std::filesystem;

constexpr std::int64_t kCarrierTimeoutNs = 2'000'000'000;

std::string degraded_directory(const std::string& id) { return state_directory(id) + "/degraded"; }
std::string bpffs_of(const std::string& id) { return state_directory(id) + "/bpffs"; }

/// The fabric of lab `id`, one end of a cable in it, and the calling process in the cables' namespace.
struct Place {
  Fabric fabric;
  CableEnd end;
};

Result<Place> go_to(const std::string& id, const std::string& port) {
  auto fabric = read_lab(id);
  if (!fabric) return std::move(fabric).error();
  auto end = find_end(*fabric, port);
  if (!end) return std::move(end).error();
  auto entered = enter_netns(fabric->cables_netns);
  if (!entered) return std::move(entered).error();
  return Place{std::move(*fabric), *end};
}

/// Asks or changes whether an interface is up administratively.
Result<bool> admin_state(const std::string& interface, std::optional<bool> wanted) {
  const UniqueFd socket(::socket(AF_INET, SOCK_DGRAM | SOCK_CLOEXEC, 0));
  if (!socket) return errno_error("open a socket");
  ifreq request{};
  interface.copy(request.ifr_name, sizeof request.ifr_name - 1);
  if (::ioctl(socket.get(), SIOCGIFFLAGS, &request) != 0) return errno_error("look at interface " + interface);
  const bool is_up = (request.ifr_flags & IFF_UP) != 0;
  if (!wanted || *wanted == is_up) return is_up;
  request.ifr_flags = static_cast<short>(*wanted ? request.ifr_flags | IFF_UP : request.ifr_flags & ~IFF_UP);
  if (::ioctl(socket.get(), SIOCSIFFLAGS, &request) != 0) return errno_error("set interface " + interface);
  return *wanted;
}

/// Waits until the kernel has acted on the carrier of `end`. Moves the process into its node's namespace.
Result<void> wait_for_end(const Place& place, const CableEnd& end, bool is_up) {
  const Port& port = port_at(place.fabric, end);
  auto entered = enter_netns(place.fabric.nodes[port.node].fabric_netns);
  if (!entered) return entered;
  const std::int64_t end_ns = monotonic_ns() + kCarrierTimeoutNs;
  while (true) {
    const auto links = netlink::read_links();
    if (!links) return links.error();
    const auto found = std::ranges::find(*links, port.name, &netlink::LinkMessage::name);
    if (found == links->end()) return Error{end_name(place.fabric, end) + " is gone"};
    // A port that someone else has set down stays so.
    if (found->operational == is_up || !found->up) return {};
    if (monotonic_ns() > end_ns) {
      return Error{end_name(place.fabric, end) + (is_up ? " did not get its carrier" : " did not lose its carrier")};
    }
    ::poll(nullptr, 0, 1);
  }
}

Result<void> wait_for_both(const Place& place, bool is_up) {
  auto first = wait_for_end(place, place.end, is_up);
  return first ? wait_for_end(place, other_end(place.end), is_up) : std::move(first);
}

Result<void> set_rate(const Fabric& fabric, const CableEnd& end, double rate_bps) {
  const Port& port = port_at(fabric, end);
  return run_program({"tc", "-n", fabric.nodes[port.node].fabric_netns, "-batch", "-"},
                     port_rate_batch(fabric, port, rate_bps));
}

/// Takes a degradation back, in whatever state it is. In the cables' namespace.
Result<void> heal(const std::string& id, const Fabric& fabric, const CableEnd& end) {
  const std::string path = degraded_directory(id) + "/" + end_name(fabric, end);
  if (!fs::exists(path)) return {};
  auto text = read_file(path);
  if (!text) return std::move(text).error();
  auto degradation = read_degradation(*text, path);
  if (!degradation) return std::move(degradation).error();
  auto lossless = end_loss(bpffs_of(id), end);
  if (!lossless) return lossless;
  if (degradation->rate_bps > 0) {
    auto fast = set_rate(fabric, end, fabric.spec.rate_bps);
    if (!fast) return fast;
  }
  if (::unlink(path.c_str()) != 0) return errno_error("remove " + path);
  return {};
}

Result<void> worsen(const std::string& id, const Fabric& fabric, const CableEnd& end, const Degradation& degradation) {
  const std::string path = degraded_directory(id) + "/" + end_name(fabric, end);
  auto noted = replace_file(path, degradation_json(degradation));
  if (!noted) return noted;
  if (degradation.rate_bps > 0) {
    auto slowed = set_rate(fabric, end, degradation.rate_bps);
    if (!slowed) return slowed;
  }
  return degradation.loss > 0 ? start_loss(bpffs_of(id), end, degradation.loss) : Result<void>();
}

Result<DegradedPort> read_degraded(const std::string& id, const Fabric& fabric, const std::string& name) {
  auto end = find_end(fabric, name);
  if (!end) return std::move(end).error();
  const std::string path = degraded_directory(id) + "/" + name;
  auto text = read_file(path);
  if (!text) return std::move(text).error();
  auto degradation = read_degradation(*text, path);
  if (!degradation) return std::move(degradation).error();
  DegradedPort port{*end, *degradation, {}};
  if (degradation->loss > 0) {
    auto counts = read_loss(bpffs_of(id), *end);
    if (!counts) return std::move(counts).error();
    port.counts = *counts;
  }
  return port;
}

}  // namespace

Result<std::int64_t> fail_cable(const std::string& id, const std::string& port) {
  auto place = go_to(id, port);
  if (!place) return std::move(place).error();
  const std::string cable = cable_name(place->end.link);
  auto is_up = admin_state(cable, std::nullopt);
  if (!is_up) return std::move(is_up).error();
  if (!*is_up) return Error{"the cable at " + port + " is cut already"};
  const std::int64_t cut_ns = monotonic_ns();
  auto cut = admin_state(cable, false);
  if (!cut) return std::move(cut).error();
  auto lost = wait_for_both(*place, false);
  if (!lost) return std::move(lost).error();
  return cut_ns;
}

Result<std::int64_t> restore_cable(const std::string& id, const std::string& port) {
  auto place = go_to(id, port);
  if (!place) return std::move(place).error();
  for (const CableEnd& end : {place->end, other_end(place->end)}) {
    auto healed = heal(id, place->fabric, end);
    if (!healed) return std::move(healed).error();
  }
  auto whole = admin_state(cable_name(place->end.link), true);
  if (!whole) return std::move(whole).error();
  auto back = wait_for_both(*place, true);
  if (!back) return std::move(back).error();
  return monotonic_ns();
}

Result<void> degrade_port(const std::string& id, const std::string& port, const Degradation& degradation) {
  auto place = go_to(id, port);
  if (!place) return std::move(place).error();
  if (degradation.rate_bps > place->fabric.spec.rate_bps) {
    return Error{"the cables of lab " + id + " carry no more than " + format_rate_bps(place->fabric.spec.rate_bps)};
  }
  auto healed = heal(id, place->fabric, place->end);
  if (!healed) return healed;
  auto worse = worsen(id, place->fabric, place->end, degradation);
  if (worse) return {};
  auto undone = heal(id, place->fabric, place->end);
  Error error = std::move(worse).error();
  if (!undone) error.message += "; and undoing it failed: " + undone.error().message;
  return error;
}

Result<Faults> read_faults(const std::string& id, const Fabric& fabric) {
  auto entered = enter_netns(fabric.cables_netns);
  if (!entered) return std::move(entered).error();
  Faults faults;
  for (std::size_t link = 0; link < fabric.links.size(); ++link) {
    auto is_up = admin_state(cable_name(link), std::nullopt);
    if (!is_up) return std::move(is_up).error();
    if (!*is_up) faults.cut.push_back(link);
  }
  std::vector<std::string> names;
  std::error_code problem;
  for (fs::directory_iterator entry(degraded_directory(id), problem), end; !problem && entry != end;
       entry.increment(problem)) {
    std::string name = entry->path().filename().string();
    if (name.find(".tmp.") == std::string::npos) names.push_back(std::move(name));  // not one that is being written
  }
  std::ranges::sort(names);
  for (const std::string& name : names) {
    auto port = read_degraded(id, fabric, name);
    if (!port) return std::move(port).error();
    faults.degraded.push_back(*port);
  }
  return faults;
}

}  // namespace te::lab
