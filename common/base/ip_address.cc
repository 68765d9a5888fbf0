// SPDX-License-Identifier: Apache-2.0
#include "common/base/ip_address.h"

#include <arpa/inet.h>

#include <algorithm>

namespace te {

Result<IpAddress> IpAddress::parse(std::string_view text) {
  const std::string copy(text);
  IpAddress address;
  if (inet_pton(AF_INET, copy.c_str(), address.bytes_.data()) == 1) {
    address.family_ = Family::kV4;
    return address;
  }
  if (inet_pton(AF_INET6, copy.c_str(), address.bytes_.data()) == 1) {
    address.family_ = Family::kV6;
    return address;
  }
  return Error{"'" + copy + "' is not an IPv4 or IPv6 address"};
}

Result<IpAddress> IpAddress::from_bytes(std::span<const std::uint8_t> bytes) {
  if (bytes.size() != 4 && bytes.size() != 16) {
    return Error{"an address has 4 or 16 bytes, not " + std::to_string(bytes.size())};
  }
  IpAddress address;
  address.family_ = bytes.size() == 4 ? Family::kV4 : Family::kV6;
  std::copy(bytes.begin(), bytes.end(), address.bytes_.begin());
  return address;
}

IpAddress IpAddress::v4(const std::array<std::uint8_t, 4>& bytes) {
  IpAddress address;
  address.family_ = Family::kV4;
  std::copy(bytes.begin(), bytes.end(), address.bytes_.begin());
  return address;
}

IpAddress IpAddress::v6(const std::array<std::uint8_t, 16>& bytes) {
  IpAddress address;
  address.family_ = Family::kV6;
  address.bytes_ = bytes;
  return address;
}

std::span<const std::uint8_t> IpAddress::bytes() const {
  const std::size_t size = is_v4() ? 4 : is_v6() ? 16 : 0;
  return std::span<const std::uint8_t>(bytes_).first(size);
}

std::string IpAddress::to_bytes() const {
  const auto all = bytes();
  return {all.begin(), all.end()};
}

std::string IpAddress::to_string() const {
  if (!is_set()) return "-";
  std::array<char, INET6_ADDRSTRLEN> text{};
  inet_ntop(is_v4() ? AF_INET : AF_INET6, bytes_.data(), text.data(), text.size());
  return text.data();
}

std::uint64_t fnv1a(std::span<const std::uint8_t> bytes, std::uint64_t seed) {
  constexpr std::uint64_t kPrime = 0x100000001b3ULL;
  for (const std::uint8_t byte : bytes) seed = (seed ^ byte) * kPrime;
  return seed;
}

}  // namespace te
