// SPDX-License-Identifier: Apache-2.0
#include "host-agent/io/credentials.h"

#include <spdlog/spdlog.h>
#include <sys/stat.h>

#include <utility>

namespace te::agent {
namespace {

Result<void> check_name(const std::string& certificate, const std::string& node) {
  const auto name = certificate_common_name(certificate);
  if (!name) return name.error();
  if (*name == node) return {};
  return Error{"certificate " + certificate + " is for '" + *name + "', but this node is '" + node +
               "': use the certificate of this node, or correct 'node'"};
}

}  // namespace

Result<Credentials> Credentials::load(TlsFiles files, std::string node) {
  Credentials credentials(std::move(files), std::move(node));
  if (auto loaded = credentials.reload(); !loaded) return std::move(loaded).error();
  credentials.renewals_ = 0;
  return credentials;
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
