// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>

namespace te::roce {

/// Sizes in bytes of what a RoCEv2 packet is made of, without options and extension headers.
inline constexpr std::size_t kIpv4Bytes = 20;
inline constexpr std::size_t kIpv6Bytes = 40;
inline constexpr std::size_t kUdpBytes = 8;
inline constexpr std::size_t kBthBytes = 12;
inline constexpr std::size_t kIcrcBytes = 4;

}  // namespace te::roce
