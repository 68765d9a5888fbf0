// SPDX-License-Identifier: Apache-2.0
#include "common/base/units.h"

#include <array>
#include <charconv>
#include <cmath>
#include <cstdio>
#include <utility>

namespace te {
namespace {

constexpr std::array<std::pair<std::string_view, double>, 5> kRateSuffixes{
    {{"", 1.0}, {"bit", 1.0}, {"kbit", 1e3}, {"mbit", 1e6}, {"gbit", 1e9}}};

template <class... Args>
std::string print(const char* format, Args... args) {
  std::array<char, 64> text{};
  std::snprintf(text.data(), text.size(), format, args...);
  return text.data();
}

}  // namespace

Result<double> parse_rate_bps(std::string_view text) {
  double number = 0;
  const auto [end, problem] = std::from_chars(text.data(), text.data() + text.size(), number);
  const std::string_view suffix = text.substr(static_cast<std::size_t>(end - text.data()));
  if (problem == std::errc() && std::isfinite(number) && number > 0) {
    for (const auto& [name, factor] : kRateSuffixes) {
      if (suffix == name) return number * factor;
    }
  }
  return Error{"'" + std::string(text) +
               "' is not a rate; write a positive number and bit, kbit, mbit or gbit, as in 400gbit"};
}

std::string format_rate_bps(double rate_bps) {
  const double size = std::fabs(rate_bps);
  if (size >= 1e9) return print("%.3g Gbit/s", rate_bps / 1e9);
  if (size >= 1e6) return print("%.3g Mbit/s", rate_bps / 1e6);
  if (size >= 1e3) return print("%.3g kbit/s", rate_bps / 1e3);
  return print("%.0f bit/s", rate_bps);
}

std::string format_duration_s(double seconds) {
  if (seconds < 1) return print("%.0f ms", seconds * 1e3);
  if (seconds < 60) return print("%.1f s", seconds);
  const auto whole = static_cast<long long>(std::llround(seconds));
  if (whole < 3600) return print("%lld min %lld s", whole / 60, whole % 60);
  return print("%lld h %lld min", whole / 3600, whole % 3600 / 60);
}

}  // namespace te
