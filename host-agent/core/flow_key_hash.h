// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>
#include <functional>

#include "host-agent/core/flow_sample.h"

template <>
struct std::hash<te::agent::FlowKey> {
  std::size_t operator()(const te::agent::FlowKey& key) const noexcept {
    const std::uint64_t addresses = te::fnv1a(key.destination.bytes(), te::fnv1a(key.source.bytes()));
    const std::uint64_t numbers = (std::uint64_t{key.ifindex} << 32) | key.destination_qpn;
    return static_cast<std::size_t>((addresses ^ numbers) * 0x9E3779B97F4A7C15ULL);
  }
};
