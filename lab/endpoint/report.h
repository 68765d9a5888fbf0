// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "common/base/result.h"
#include "common/os/unique_fd.h"
#include "lab/endpoint/queue_pair.h"

namespace te::lab {

/// The QPs in the form of `rdma -j resource show qp`; `state`: INIT, RTS, ...
[[nodiscard]] std::string qp_table_json(const std::vector<QueuePair>& qps, const char* state);

/// What an endpoint counts beside its QPs.
struct EndpointCounters {
  std::uint64_t icrc_errors = 0;
  std::uint64_t malformed = 0;
  std::uint64_t unknown_qp = 0;
  std::uint64_t receive_drops = 0;

  EndpointCounters& operator+=(const EndpointCounters& other) {
    icrc_errors += other.icrc_errors;
    malformed += other.malformed;
    unknown_qp += other.unknown_qp;
    receive_drops += other.receive_drops;
    return *this;
  }
};

/// One line of counters, each since the start.
[[nodiscard]] std::string stats_line(const std::string& host, std::int64_t now_ns, std::vector<QueuePair>& qps,
                                     const EndpointCounters& counters);

/// A file of JSON lines that is renamed to FILE.1 and begun anew when it gets long.
class StatsFile {
 public:
  static Result<StatsFile> create(const std::string& path);
  void append(const std::string& line);

 private:
  StatsFile(std::string path, UniqueFd fd) : path_(std::move(path)), fd_(std::move(fd)) {}
  std::string path_;
  UniqueFd fd_;
  std::size_t written_bytes_ = 0;
};

}  // namespace te::lab
