// SPDX-License-Identifier: Apache-2.0
#include "host-agent/io/qp_source.h"

#include <sys/stat.h>

#include <cerrno>
#include <tuple>
#include <utility>

#include "common/os/file.h"
#include "host-agent/io/rdma_socket.h"

namespace te::agent {
namespace {

class NoQpSource : public QpSource {
 public:
  Reading poll(std::int64_t) override { return {v1::Source::OFF, "qp_source: none", std::nullopt}; }
};

/// A file that somebody else replaces: read again when it is another one or was changed.
class FileQpSource : public QpSource {
 public:
  explicit FileQpSource(std::string path) : path_(std::move(path)) {}

  Reading poll(std::int64_t) override {
    struct stat status {};
    if (::stat(path_.c_str(), &status) != 0) {
      seen_.reset();
      return last_ = {v1::Source::OFF, errno_error("read " + path_).message, std::nullopt};
    }
    const Identity identity{status.st_dev, status.st_ino, status.st_size, status.st_mtim.tv_sec, status.st_mtim.tv_nsec};
    if (seen_ == identity) return {last_.state, last_.reason, std::nullopt};
    seen_ = identity;
    last_ = read();
    return std::exchange(last_.table, std::nullopt) ? Reading{last_.state, last_.reason, std::move(fresh_)} : last_;
  }

 private:
  using Identity = std::tuple<dev_t, ino_t, off_t, time_t, long>;

  Reading read() {
    const auto text = read_file(path_);
    if (!text) return {v1::Source::OFF, text.error().message, std::nullopt};
    auto table = parse_qp_table(*text, path_);
    if (!table) return {v1::Source::OFF, table.error().message, std::nullopt};
    fresh_ = *std::move(table);
    return {v1::Source::ON, path_, std::vector<QueuePair>()};
  }

  std::string path_;
  std::optional<Identity> seen_;
  Reading last_;
  std::vector<QueuePair> fresh_;
};

}  // namespace
}  // namespace te::agent
