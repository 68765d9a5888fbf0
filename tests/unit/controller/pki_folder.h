// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <stdlib.h>

#include <filesystem>
#include <optional>
#include <string>

#include "common/net/authority.h"
#include "common/net/tls.h"
#include "common/os/file.h"

namespace te::test {

/// An authority as 'tectl certs' makes it, in a folder that goes away with the test.
class PkiFolder {
 public:
  PkiFolder() {
    std::string pattern = (std::filesystem::temp_directory_path() / "te-pki-XXXXXX").string();
    folder_ = ::mkdtemp(pattern.data());
    authority_.emplace(Authority::create(directory(), 30).value());
  }
  PkiFolder(const PkiFolder&) = delete;
  PkiFolder& operator=(const PkiFolder&) = delete;
  ~PkiFolder() {
    std::error_code ignored;
    std::filesystem::remove_all(folder_, ignored);
  }

  /// Files of a new certificate; the revocation list is looked at.
  TlsFiles issue(const std::string& name, CertificateUse use = CertificateUse::kClient) {
    const std::string key = make_private_key().value();
    const CertificateOrder order{.name = name, .use = use, .hosts = {}, .days = 30};
    const std::string certificate = authority_->certify(make_request(key, name).value(), order).value();
    TlsFiles files{folder_ + "/" + name + ".pem", folder_ + "/" + name + ".key", directory() + "/ca.pem",
                   directory() + "/crl.pem"};
    TE_CHECK(replace_file(files.certificate, certificate).ok() && replace_file(files.key, key).ok(), "cannot write");
    return files;
  }
  [[nodiscard]] const Authority& authority() const { return *authority_; }
  [[nodiscard]] const std::string& folder() const { return folder_; }
  [[nodiscard]] std::string directory() const { return folder_ + "/ca"; }

 private:
  std::string folder_;
  std::optional<Authority> authority_;
};

}  // namespace te::test
