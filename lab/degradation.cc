// SPDX-License-Identifier: Apache-2.0
#include "lab/degradation.h"

#include <fmt/format.h>

#include <charconv>
#include <cmath>

#include "common/yaml/yaml_reader.h"

namespace te::lab {

Result<double> parse_percent(std::string_view text) {
  double percent = 0;
  const char* const end = text.data() + text.size();
  const auto [stop, problem] = std::from_chars(text.data(), end, percent, std::chars_format::fixed);
  const bool is_percent = problem == std::errc() && end - stop == 1 && *stop == '%';
  if (!is_percent || !(percent > 0) || percent > 100) {
    return Error{"'" + std::string(text) + "' is not a percentage of more than 0% and at most 100%, as in 0.5%"};
  }
  return percent / 100;
}

std::uint64_t loss_threshold(double loss) { return static_cast<std::uint64_t>(std::llround(std::ldexp(loss, 32))); }

std::string degradation_json(const Degradation& degradation) {
  return fmt::format("{{\"loss\": {}, \"rate_bps\": {}}}\n", degradation.loss, degradation.rate_bps);
}

Result<Degradation> read_degradation(std::string_view text, const std::string& source) {
  auto root = YamlReader::parse(text, source);
  if (!root) return std::move(root).error();
  constexpr double kMostBps = 1e12;
  auto loss = root->number_or("loss", 0, 0, 1);
  if (!loss) return std::move(loss).error();
  auto rate_bps = root->number_or("rate_bps", 0, 0, kMostBps);
  if (!rate_bps) return std::move(rate_bps).error();
  return Degradation{*loss, *rate_bps};
}

}  // namespace te::lab
