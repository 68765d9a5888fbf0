// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <array>
#include <compare>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <span>
#include <string>
#include <string_view>

#include "common/base/result.h"

namespace te {

/// An IPv4 or IPv6 address in network byte order. Default: unset (no family).
class IpAddress {
 public:
  enum class Family : std::uint8_t { kNone, kV4, kV6 };

  IpAddress() = default;
  /// From "10.0.0.1" or "fd00::1"; an Error names the text.
  static Result<IpAddress> parse(std::string_view text);
  /// From 4 or 16 bytes in network order; an Error for any other length.
  static Result<IpAddress> from_bytes(std::span<const std::uint8_t> bytes);
  static IpAddress v4(const std::array<std::uint8_t, 4>& bytes);
  static IpAddress v6(const std::array<std::uint8_t, 16>& bytes);

  [[nodiscard]] Family family() const { return family_; }
  [[nodiscard]] bool is_v4() const { return family_ == Family::kV4; }
  [[nodiscard]] bool is_v6() const { return family_ == Family::kV6; }
  [[nodiscard]] bool is_set() const { return family_ != Family::kNone; }
  /// 4, 16 or (unset) 0 bytes in network order.
  [[nodiscard]] std::span<const std::uint8_t> bytes() const;
  /// The same bytes as a string, the form protobuf `bytes` fields take.
  [[nodiscard]] std::string to_bytes() const;
  /// Text form; "-" when unset.
  [[nodiscard]] std::string to_string() const;

  auto operator<=>(const IpAddress&) const = default;

 private:
  Family family_ = Family::kNone;
  std::array<std::uint8_t, 16> bytes_{};
};

/// FNV-1a, 64 bits, continued from `seed`: hashes of keys that must be the same in every run.
[[nodiscard]] std::uint64_t fnv1a(std::span<const std::uint8_t> bytes, std::uint64_t seed = 0xcbf29ce484222325ULL);

}  // namespace te

template <>
struct std::hash<te::IpAddress> {
  std::size_t operator()(const te::IpAddress& address) const noexcept {
    return static_cast<std::size_t>(te::fnv1a(address.bytes()));
  }
};
