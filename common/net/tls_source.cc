// SPDX-License-Identifier: Apache-2.0
#include "common/net/tls_source.h"

#include <sys/stat.h>

#include <utility>

namespace te {
namespace {

std::vector<std::string> paths_of(const TlsFiles& files) {
  std::vector<std::string> paths{files.certificate, files.key, files.ca};
  if (!files.crl.empty()) paths.push_back(files.crl);
  return paths;
}

}  // namespace

FileWatch::FileWatch(std::vector<std::string> paths) : paths_(std::move(paths)), seen_(look()) {}

std::vector<FileWatch::Stamp> FileWatch::look() const {
  std::vector<Stamp> stamps;
  for (const std::string& path : paths_) {
    struct stat found {};
    Stamp stamp;
    if (::stat(path.c_str(), &found) == 0) {
      stamp.written_ns = found.st_mtim.tv_sec * std::int64_t{1'000'000'000} + found.st_mtim.tv_nsec;
      stamp.size = found.st_size;
      stamp.inode = found.st_ino;
    }
    stamps.push_back(stamp);
  }
  return stamps;
}

bool FileWatch::changed() {
  auto now = look();
  return std::exchange(seen_, now) != now;
}

Result<std::shared_ptr<TlsSource>> TlsSource::open(const TlsFiles& files, PeerCertificate wanted) {
  FileWatch watch(paths_of(files));  // before they are read: what changes meanwhile is seen by the next refresh
  auto context = make_tls_context(files, TlsSide::kServer, wanted);
  if (!context) return std::move(context).error();
  return std::make_shared<TlsSource>(files, wanted, std::move(watch), *std::move(context));
}

TlsSource::TlsSource(TlsFiles files, PeerCertificate wanted, FileWatch watch,
                     std::shared_ptr<boost::asio::ssl::context> context)
    : files_(std::move(files)), wanted_(wanted), watch_(std::move(watch)), context_(std::move(context)) {}

Result<bool> TlsSource::refresh(bool always) {
  const bool changed = watch_.changed();
  if (!changed && !always) return false;
  auto context = make_tls_context(files_, TlsSide::kServer, wanted_);
  if (!context) return std::move(context).error();
  context_ = *std::move(context);
  return true;
}

}  // namespace te
