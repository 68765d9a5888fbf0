// SPDX-License-Identifier: Apache-2.0
#include "host-agent/io/qp_source.h"

#include <sys/stat.h>

#include <tuple>
#include <utility>

#include "common/os/file.h"
#include "host-agent/io/rdma_socket.h"

namespace te::agent {
namespace {

// Some 50,000 queue pairs; the time to parse more would be missed elsewhere.
constexpr std::size_t kMostFileBytes = std::size_t{8} << 20;

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
      return {v1::Source::OFF, errno_error("read " + path_).message, std::nullopt};
    }
    const Identity identity{status.st_dev, status.st_ino, status.st_size, status.st_mtim.tv_sec,
                            status.st_mtim.tv_nsec};
    if (seen_ == identity) return {state_, reason_, std::nullopt};
    seen_ = identity;
    Reading fresh = read();
    state_ = fresh.state;
    reason_ = fresh.reason;
    return fresh;
  }

 private:
  using Identity = std::tuple<dev_t, ino_t, off_t, time_t, long>;

  [[nodiscard]] Reading read() const {
    const auto text = read_regular_file(path_, kMostFileBytes);
    if (!text) return {v1::Source::OFF, text.error().message, std::nullopt};
    auto table = parse_qp_table(*text, path_);
    if (!table) return {v1::Source::OFF, table.error().message, std::nullopt};
    return {v1::Source::ON, path_, *std::move(table)};
  }

  std::string path_;
  std::optional<Identity> seen_;
  v1::Source::State state_ = v1::Source::OFF;
  std::string reason_;
};

/// The kernel's own table; no message tells when it changes, so it is read again every second.
class NetlinkQpSource : public QpSource {
 public:
  Reading poll(std::int64_t now_ns) override {
    constexpr std::int64_t kEveryNs = 1'000'000'000;
    if (now_ns < next_ns_) return {state_, reason_, std::nullopt};
    next_ns_ = now_ns + kEveryNs;
    auto table = read_rdma_queue_pairs();
    if (!table.queue_pairs) {
      state_ = table.supported ? v1::Source::OFF : v1::Source::NOT_SUPPORTED;
      reason_ = table.queue_pairs.error().message;
      last_.reset();
      return {state_, reason_, std::nullopt};
    }
    state_ = v1::Source::ON;
    reason_ = "netlink";
    if (last_ == *table.queue_pairs) return {state_, reason_, std::nullopt};
    last_ = *table.queue_pairs;
    return {state_, reason_, last_};
  }

 private:
  std::int64_t next_ns_ = 0;
  std::optional<std::vector<QueuePair>> last_;
  v1::Source::State state_ = v1::Source::OFF;
  std::string reason_;
};

}  // namespace

std::unique_ptr<QpSource> make_qp_source(const QpSourceConfig& config) {
  switch (config.kind) {
    case QpSourceConfig::Kind::kFile:
      return std::make_unique<FileQpSource>(config.path);
    case QpSourceConfig::Kind::kNetlink:
      return std::make_unique<NetlinkQpSource>();
    case QpSourceConfig::Kind::kNone:
      break;
  }
  return std::make_unique<NoQpSource>();
}

}  // namespace te::agent
