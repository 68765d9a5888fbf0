// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <cstring>
#include <functional>
#include <optional>
#include <span>
#include <string>

#include "common/base/result.h"

namespace te::netlink {

using Bytes = std::span<const std::uint8_t>;

/// Calls `take(type, payload)` for each attribute of a list (Linux uapi/linux/netlink.h, struct nlattr); stops at the
/// first Error, its own or take()'s. The type comes without its flags.
Result<void> for_each_attribute(Bytes list, const std::function<Result<void>(std::uint16_t, Bytes)>& take);

/// The number that an attribute called `name` holds; an Error when its size is not that of T.
template <class T>
Result<T> number_of(Bytes payload, const char* name) {
  if (payload.size() != sizeof(T)) {
    return Error{std::string(name) + " has " + std::to_string(payload.size()) + " bytes, expected " +
                 std::to_string(sizeof(T))};
  }
  T number{};
  std::memcpy(&number, payload.data(), sizeof(T));
  return number;
}

/// number_of(), into a variable that has the type of the attribute.
template <class T>
Result<void> store(T& into, Bytes payload, const char* name) {
  const auto number = number_of<T>(payload, name);
  if (!number) return number.error();
  into = *number;
  return {};
}

template <class T>
Result<void> store(std::optional<T>& into, Bytes payload, const char* name) {
  return store(into.emplace(), payload, name);
}

/// A text attribute up to its first NUL.
[[nodiscard]] std::string text_of(Bytes payload);

}  // namespace te::netlink
