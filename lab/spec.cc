// SPDX-License-Identifier: Apache-2.0
#include "lab/spec.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <charconv>

#include "common/base/units.h"
#include "lab/bpf/vlan_tags.h"

namespace te::lab {
namespace {

constexpr std::size_t kMaxIdLength = 16;
/// Headers around a packet's payload that rdma_rxe reserves room for (RXE_MAX_HDR_LENGTH).
constexpr int kRxeHeaderRoom = 80;
/// More than two QPs with windows of 16 packets keep in one queue (about 20), less than three do (about 30).
constexpr std::uint32_t kMarkPackets = 24;
/// Ethernet, IPv4, UDP, BTH and ICRC.
constexpr std::uint32_t kHeaderBytes = 58;
constexpr std::uint16_t kLastVlan = 4094;

Result<void> in_range(const char* name, int value, int least, int most) {
  if (value >= least && value <= most) return {};
  return Error{fmt::format("{} is {}; it must be {} to {}", name, value, least, most)};
}

Result<IpAddress::Family> family_of(std::int64_t number) {
  if (number == 4) return IpAddress::Family::kV4;
  if (number == 6) return IpAddress::Family::kV6;
  return Error{fmt::format("family is {}; it must be 4 or 6", number)};
}

}  // namespace

bool is_lab_id(std::string_view id) {
  return !id.empty() && id.size() <= kMaxIdLength && std::ranges::all_of(id, [](char letter) {
    return (letter >= 'a' && letter <= 'z') || (letter >= '0' && letter <= '9');
  });
}

Result<std::vector<std::uint16_t>> parse_vlans(const std::string& text) {
  std::vector<std::uint16_t> vlans;
  const char* at = text.data();
  const char* const end = at + text.size();
  while (at != end) {
    std::uint16_t vlan = 0;
    const auto [stop, failed] = std::from_chars(at, end, vlan);
    const bool ends_well = stop == end || (*stop == ',' && stop + 1 != end);
    if (failed != std::errc() || !ends_well || vlan < 1 || vlan > kLastVlan || vlans.size() == kMostVlans) {
      return Error{"'" + text + "' is not one VLAN of 1 to 4094, or two as in 100,200 (the outer one first)"};
    }
    vlans.push_back(vlan);
    at = stop == end ? end : stop + 1;
  }
  return vlans;
}

std::string format_vlans(const std::vector<std::uint16_t>& vlans) { return fmt::format("{}", fmt::join(vlans, ",")); }

int path_mtu_of(int mtu) {
  constexpr std::array kSizes{4096, 2048, 1024, 512, 256};
  for (const int size : kSizes) {
    if (mtu >= size + kRxeHeaderRoom) return size;
  }
  return kSizes.back();
}

Result<Spec> checked(Spec spec) {
  if (!spec.id.empty() && !is_lab_id(spec.id)) {
    return Error{"lab id '" + spec.id + "' must be 1 to 16 lower-case letters and digits"};
  }
  const int groups = std::max(spec.leaves / std::max(spec.nics, 1), 1);
  const int hosts_per_leaf = (spec.hosts + groups - 1) / groups;
  for (const auto& check :
       {in_range("hosts", spec.hosts, 1, 4000), in_range("nics", spec.nics, 1, 16),
        in_range("leaves", spec.leaves, 1, 99), in_range("spines", spec.spines, 1, 250),
        in_range("mtu", spec.mtu, 1280, 9000), in_range("hosts on one leaf", hosts_per_leaf, 1, 250)}) {
    if (!check) return check.error();
  }
  if (spec.leaves % spec.nics != 0) {
    return Error{fmt::format("leaves is {}; with {} NICs a host it must be a multiple of {}", spec.leaves, spec.nics,
                             spec.nics)};
  }
  const bool rate_in_range = spec.rate_bps >= 1e6 && spec.rate_bps <= 1e11;
  if (!rate_in_range) return Error{"rate must be 1mbit to 100gbit"};
  if (spec.seed == 0) return Error{"seed must not be 0: the kernel would take a random one"};
  if (spec.mark_bytes == 0) {
    spec.mark_bytes = kMarkPackets * (static_cast<std::uint32_t>(path_mtu_of(spec.mtu)) + kHeaderBytes);
  }
  return spec;
}

Result<Spec> read_spec(const YamlReader& root, Spec defaults) {
  const auto keys = root.only_keys(
      {"id", "hosts", "nics", "leaves", "spines", "rate", "mtu", "seed", "family", "nic_netns", "vlan", "mark_bytes"});
  if (!keys) return keys.error();
  Spec spec = std::move(defaults);
  Error failed;
  const auto integer = [&](const char* key, auto& field, std::int64_t most) {
    auto value = root.integer_or(key, static_cast<std::int64_t>(field), 0, most);
    if (!value) {
      failed = std::move(value).error();
    } else {
      field = static_cast<std::remove_reference_t<decltype(field)>>(*value);
    }
  };
  integer("hosts", spec.hosts, 4000);
  integer("nics", spec.nics, 16);
  integer("leaves", spec.leaves, 99);
  integer("spines", spec.spines, 250);
  integer("mtu", spec.mtu, 9000);
  integer("seed", spec.seed, UINT32_MAX);
  integer("mark_bytes", spec.mark_bytes, UINT32_MAX);
  int family_number = spec.family == IpAddress::Family::kV6 ? 6 : 4;
  integer("family", family_number, 6);
  if (!failed.message.empty()) return failed;
  auto id = root.string_or("id", spec.id);
  if (!id) return std::move(id).error();
  spec.id = *id;
  auto rate = root.string_or("rate", fmt::format("{:.0f}", spec.rate_bps));
  if (!rate) return std::move(rate).error();
  auto rate_bps = parse_rate_bps(*rate);
  if (!rate_bps) return root.error("rate: " + rate_bps.error().message);
  spec.rate_bps = *rate_bps;
  auto family = family_of(family_number);
  if (!family) return root.error(family.error().message);
  spec.family = *family;
  const auto nic_netns = root.boolean_or("nic_netns", spec.nic_netns);
  if (!nic_netns) return nic_netns.error();
  spec.nic_netns = *nic_netns;
  const auto vlan = root.string_or("vlan", format_vlans(spec.vlans));
  if (!vlan) return vlan.error();
  auto vlans = parse_vlans(*vlan);
  if (!vlans) return root.error("vlan: " + vlans.error().message);
  spec.vlans = *std::move(vlans);
  auto valid = checked(std::move(spec));
  if (!valid) return root.error(valid.error().message);
  return valid;
}

}  // namespace te::lab
