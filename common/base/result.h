// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdio>
#include <cstdlib>
#include <optional>
#include <string>
#include <utility>
#include <variant>

namespace te {

/// A recoverable failure, told to the user: what was tried, on what, and what to do.
struct Error {
  std::string message;
};

/// Prefixes `error` with what was being done: "read /etc/x: no such file".
[[nodiscard]] inline Error with_context(Error error, const std::string& doing) {
  return Error{doing + ": " + std::move(error.message)};
}

[[noreturn]] inline void check_failed(const char* file, int line, const std::string& message) {
  std::fprintf(stderr, "%s:%d: broken invariant: %s\n", file, line, message.c_str());
  std::abort();
}

/// Ends the program when an invariant of our own code is broken; never for bad input.
#define TE_CHECK(condition, message)                                   \
  do {                                                                 \
    if (!(condition)) ::te::check_failed(__FILE__, __LINE__, message); \
  } while (false)

/// A value, or the Error that kept it from being made. Reading the wrong one breaks an invariant.
template <class T>
class [[nodiscard]] Result {
 public:
  Result(T value) : state_(std::in_place_index<0>, std::move(value)) {}      // NOLINT(google-explicit-constructor)
  Result(Error error) : state_(std::in_place_index<1>, std::move(error)) {}  // NOLINT(google-explicit-constructor)

  [[nodiscard]] bool ok() const { return state_.index() == 0; }
  explicit operator bool() const { return ok(); }

  T& value() & {
    TE_CHECK(ok(), error_message());
    return *std::get_if<0>(&state_);
  }
  const T& value() const& {
    TE_CHECK(ok(), error_message());
    return *std::get_if<0>(&state_);
  }
  T&& value() && {
    TE_CHECK(ok(), error_message());
    return std::move(*std::get_if<0>(&state_));
  }
  T& operator*() & { return value(); }
  const T& operator*() const& { return value(); }
  T&& operator*() && { return std::move(*this).value(); }
  T* operator->() { return &value(); }
  const T* operator->() const { return &value(); }

  [[nodiscard]] const Error& error() const& {
    TE_CHECK(!ok(), "error() of a Result that holds a value");
    return *std::get_if<1>(&state_);
  }
  [[nodiscard]] Error&& error() && {
    TE_CHECK(!ok(), "error() of a Result that holds a value");
    return std::move(*std::get_if<1>(&state_));
  }

 private:
  [[nodiscard]] std::string error_message() const { return ok() ? std::string() : std::get_if<1>(&state_)->message; }

  std::variant<T, Error> state_;
};

/// Success, or an Error.
template <>
class [[nodiscard]] Result<void> {
 public:
  Result() = default;
  Result(Error error) : error_(std::move(error)) {}  // NOLINT(google-explicit-constructor)

  [[nodiscard]] bool ok() const { return !error_.has_value(); }
  explicit operator bool() const { return ok(); }
  [[nodiscard]] const Error& error() const& {
    TE_CHECK(!ok(), "error() of a Result that holds a value");
    return *error_;
  }
  [[nodiscard]] Error&& error() && {
    TE_CHECK(!ok(), "error() of a Result that holds a value");
    return std::move(*error_);
  }

 private:
  std::optional<Error> error_;
};

}  // namespace te
