// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "common/net/tls.h"

namespace te {

/// Tells when one of some files was replaced or written. A file that is missing counts as one that has changed.
class FileWatch {
 public:
  explicit FileWatch(std::vector<std::string> paths);
  /// Whether something changed since the last call (or since it was made).
  [[nodiscard]] bool changed();

 private:
  struct Stamp {
    std::int64_t written_ns = 0;
    std::int64_t size = -1;
    std::uint64_t inode = 0;
    bool operator==(const Stamp&) const = default;
  };
  [[nodiscard]] std::vector<Stamp> look() const;

  std::vector<std::string> paths_;
  std::vector<Stamp> seen_;
};

/// A server's TLS context that follows its files. A connection keeps the context it began with.
class TlsSource {
 public:
  static Result<std::shared_ptr<TlsSource>> open(const TlsFiles& files, PeerCertificate wanted);
  TlsSource(TlsFiles files, PeerCertificate wanted, FileWatch watch,
            std::shared_ptr<boost::asio::ssl::context> context);

  [[nodiscard]] const std::shared_ptr<boost::asio::ssl::context>& context() const { return context_; }
  /// Reads the files again if one changed, or if `always`: true when there is a new context. An Error: the new files
  /// cannot be used, and the old context stays; told once for each change.
  Result<bool> refresh(bool always);

 private:
  TlsFiles files_;
  PeerCertificate wanted_;
  FileWatch watch_;
  std::shared_ptr<boost::asio::ssl::context> context_;
};

}  // namespace te
