// SPDX-License-Identifier: Apache-2.0
#include "common/os/log.h"

#include <spdlog/sinks/stdout_sinks.h>
#include <spdlog/spdlog.h>

namespace te {

Result<void> start_log(const std::string& program, const std::string& level) {
  const auto parsed = spdlog::level::from_str(level);
  if (level != "error" && level != "warn" && level != "info" && level != "debug") {
    return Error{"log level '" + level + "' is not one of error, warn, info, debug"};
  }
  auto logger = std::make_shared<spdlog::logger>(program, std::make_shared<spdlog::sinks::stderr_sink_mt>());
  logger->set_pattern("%Y-%m-%dT%H:%M:%S.%e %L %n: %v");
  logger->set_level(parsed);
  logger->flush_on(spdlog::level::info);
  spdlog::set_default_logger(std::move(logger));
  return {};
}

}  // namespace te
