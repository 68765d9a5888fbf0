// SPDX-License-Identifier: Apache-2.0
#include "host-agent/io/credentials.h"

#include <openssl/pem.h>
#include <openssl/x509.h>
#include <spdlog/spdlog.h>
#include <sys/stat.h>

#include <algorithm>
#include <limits>
#include <utility>

#include "common/os/file.h"

namespace te::agent {
namespace {

Result<void> check_name(const std::string& certificate, const std::string& node) {
  const auto name = certificate_common_name(certificate);
  if (!name) return name.error();
  if (*name == node) return {};
  return Error{"certificate " + certificate + " is for '" + *name + "', but this node is '" + node +
               "': use the certificate of this node, or correct 'node'"};
}

/// From now to a time of a certificate.
std::int64_t seconds_until(const ASN1_TIME* time) {
  int days = 0;
  int seconds = 0;
  if (ASN1_TIME_diff(&days, &seconds, nullptr, time) != 1) return 0;
  return std::int64_t{days} * 86400 + seconds;
}

Result<std::int64_t> seconds_left_of(const std::string& path) {
  const auto pem = read_file(path);
  if (!pem) return pem.error();
  const std::unique_ptr<BIO, decltype(&BIO_free)> bio(BIO_new_mem_buf(pem->data(), static_cast<int>(pem->size())),
                                                      &BIO_free);
  const std::unique_ptr<X509, decltype(&X509_free)> certificate(PEM_read_bio_X509(bio.get(), nullptr, nullptr, nullptr),
                                                                &X509_free);
  if (!certificate) return Error{path + " holds no PEM certificate"};
  if (seconds_until(X509_get0_notBefore(certificate.get())) > 0) return Error{path + " is not valid yet"};
  return seconds_until(X509_get0_notAfter(certificate.get()));
}

}  // namespace

Result<Credentials> Credentials::load(TlsFiles files, std::string node) {
  Credentials credentials(std::move(files), std::move(node));
  if (auto loaded = credentials.reload(); !loaded) return std::move(loaded).error();
  credentials.renewals_ = 0;
  return credentials;
}

Result<std::int64_t> Credentials::seconds_left() const {
  std::int64_t least_s = std::numeric_limits<std::int64_t>::max();
  for (const std::string* path : {&files_.certificate, &files_.ca}) {
    const auto left_s = seconds_left_of(*path);
    if (!left_s) return left_s;
    least_s = std::min(least_s, *left_s);
  }
  return least_s;
}

Credentials::Stamps Credentials::look() const {
  Stamps stamps;
  const std::array paths{&files_.certificate, &files_.key, &files_.ca};
  for (std::size_t i = 0; i < paths.size(); ++i) {
    struct stat status {};
    if (::stat(paths[i]->c_str(), &status) != 0) continue;
    stamps[i] = {status.st_dev, status.st_ino, status.st_size, status.st_ctim.tv_sec, status.st_ctim.tv_nsec};
  }
  return stamps;
}

Result<void> Credentials::reload() {
  seen_ = look();  // before reading: what is written meanwhile differs at the next look
  auto named = check_name(files_.certificate, node_);
  auto fresh = named ? make_tls_context(files_, TlsSide::kClient) : std::move(named).error();
  if (!fresh) {
    ++failures_;
    return std::move(fresh).error();
  }
  context_ = *std::move(fresh);
  ++renewals_;
  return {};
}

std::shared_ptr<boost::asio::ssl::context> Credentials::current() {
  if (look() == seen_) return context_;
  if (const auto reloaded = reload(); reloaded) {
    spdlog::info("certificate files have changed: the new ones are in use from this session on");
  } else {
    spdlog::warn("certificate files have changed and cannot be used, the ones before stay in use: {}",
                 reloaded.error().message);
  }
  return context_;
}

}  // namespace te::agent
