// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <sys/types.h>

#include <cstdint>
#include <filesystem>
#include <memory>
#include <string>

#include "common/base/result.h"
#include "common/net/tls.h"

namespace te {

struct ControllerSettings {
  std::filesystem::path program;
  std::filesystem::path directory;  ///< for its files; must exist
  TlsFiles tls;
  std::string topology_yaml;
  std::uint32_t report_interval_ms = 500;
};

/// What a controller says of itself in /v1/status.
struct ControllerStatus {
  int agents = 0;
  int flows = 0;
  int known_paths = 0;
  int plan_cycles = 0;
  double plan_ms = 0;
};

struct CpuTime {
  double thread_s = 0;   ///< of the thread that serves agents and decides: TLS, decoding, engine
  double process_s = 0;  ///< that, and the planner's thread and the store's
};

/// A te-controller with agents on 127.0.0.1, at a port that the kernel chose. It ends with this object, or with us.
class ControllerProcess {
 public:
  /// Returns once it is ready, 20 s at most.
  static Result<std::unique_ptr<ControllerProcess>> start(const ControllerSettings& settings);
  ControllerProcess(pid_t pid, std::filesystem::path directory) : pid_(pid), directory_(std::move(directory)) {}
  ControllerProcess(const ControllerProcess&) = delete;
  ControllerProcess& operator=(const ControllerProcess&) = delete;
  ~ControllerProcess();

  [[nodiscard]] std::uint16_t port() const { return port_; }
  [[nodiscard]] pid_t pid() const { return pid_; }
  [[nodiscard]] Result<ControllerStatus> status() const;
  /// User and system time since it started, from /proc.
  [[nodiscard]] CpuTime cpu() const;
  [[nodiscard]] double rss_mb() const;
  /// Bytes under way on the connections of agents: in the kernel's queues of either end.
  [[nodiscard]] std::uint64_t socket_bytes() const;

 private:
  Result<void> wait_ready();

  pid_t pid_;
  std::filesystem::path directory_;
  std::uint16_t port_ = 0;
};

}  // namespace te
