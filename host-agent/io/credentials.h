// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <sys/types.h>

#include <array>
#include <boost/asio/ssl/context.hpp>
#include <cstdint>
#include <memory>
#include <string>

#include "common/net/tls.h"

namespace te::agent {

/// A node's certificate, its key and the authority it trusts, as the next session with a controller uses them. Files
/// that were replaced are taken up without a restart; new ones that cannot be used leave the old ones in force.
class Credentials {
 public:
  /// An Error when the files cannot be used, or the certificate is for another name than `node`.
  static Result<Credentials> load(TlsFiles files, std::string node);

  /// For a new session: reads the files first, should they be others than at the last look.
  std::shared_ptr<boost::asio::ssl::context> current();
  /// Reads the files, changed or not. An Error says why the old ones stay in force.
  Result<void> reload();

  /// Seconds until the first of the node's certificate and the authority's is no longer valid; negative: since then. An
  /// Error when one is not valid yet.
  [[nodiscard]] Result<std::int64_t> seconds_left() const;

  /// Times that other files came into force, and that new ones could not be used.
  [[nodiscard]] std::uint64_t renewals() const { return renewals_; }
  [[nodiscard]] std::uint64_t failures() const { return failures_; }

 private:
  /// What tells one file from another, or from itself before it was written.
  struct Stamp {
    dev_t device = 0;
    ino_t inode = 0;
    off_t bytes = 0;
    std::int64_t changed_s = 0;
    std::int64_t changed_ns = 0;
    bool operator==(const Stamp&) const = default;
  };
  using Stamps = std::array<Stamp, 3>;

  Credentials(TlsFiles files, std::string node) : files_(std::move(files)), node_(std::move(node)) {}
  [[nodiscard]] Stamps look() const;

  TlsFiles files_;
  std::string node_;
  std::shared_ptr<boost::asio::ssl::context> context_;
  Stamps seen_;
  std::uint64_t renewals_ = 0;
  std::uint64_t failures_ = 0;
};

}  // namespace te::agent
