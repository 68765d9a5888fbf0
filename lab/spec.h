// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "common/base/ip_address.h"
#include "common/base/result.h"
#include "common/yaml/yaml_reader.h"

namespace te::lab {

/// What `te-lab up` builds: a leaf-spine fabric with every leaf linked to every spine once.
struct Spec {
  std::string id;  ///< part of every namespace's name; [a-z0-9], at most 16
  int hosts = 8;   ///< 1..4000, attached round robin: to leaves, or with several NICs to groups of so many leaves
  int nics = 1;    ///< of each host, 1..16; NIC k at leaf k of its group (a rail)
  int leaves = 2;  ///< 1..99, a multiple of `nics`
  int spines = 4;  ///< 1..250
  double rate_bps = 50e6;  ///< of every fabric link, each direction, Ethernet header counted
  int mtu = 4500;          ///< bytes, of every fabric interface; 1280..9000
  std::uint32_t seed = 1;  ///< decides the switches' ECMP hash seeds and the endpoints' numbers; not 0
  IpAddress::Family family = IpAddress::Family::kV4;
  bool nic_netns = false;            ///< a host's NICs are in a network namespace of their own, as in a pod
  std::vector<std::uint16_t> vlans;  ///< at most 2, of a NIC's interface; the outermost first
  std::uint32_t mark_bytes = 0;      ///< queue length from which switches mark CE; 0: 24 full packets
};

/// Checks ranges and fills in what is derived. An Error names the value and what is allowed.
Result<Spec> checked(Spec spec);
/// Reads a spec (keys: id, hosts, nics, leaves, spines, rate, mtu, seed, family, nic_netns, vlan,
/// mark_bytes) over `defaults`.
Result<Spec> read_spec(const YamlReader& root, Spec defaults);
/// Reads "100" or "100,200" (1..4094 each), the outermost first; empty is none.
Result<std::vector<std::uint16_t>> parse_vlans(const std::string& text);
/// As parse_vlans() reads it.
[[nodiscard]] std::string format_vlans(const std::vector<std::uint16_t>& vlans);
[[nodiscard]] bool is_lab_id(std::string_view id);
/// Largest RoCE path MTU (256..4096) that an interface of `mtu` bytes carries, as Linux's rdma_rxe chooses it.
[[nodiscard]] int path_mtu_of(int mtu);

}  // namespace te::lab
