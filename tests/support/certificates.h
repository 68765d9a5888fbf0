// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <string>

#include "common/net/tls.h"

namespace te::test {

/// A certificate authority that lives as long as a test, with its files in a temporary folder of its own.
class CertificateAuthority {
 public:
  CertificateAuthority();
  ~CertificateAuthority();
  CertificateAuthority(const CertificateAuthority&) = delete;
  CertificateAuthority& operator=(const CertificateAuthority&) = delete;

  /// Files of a new certificate for `common_name`, signed by this authority.
  TlsFiles issue(const std::string& common_name);
  [[nodiscard]] const std::string& folder() const { return folder_; }

 private:
  std::string folder_;
  void* key_ = nullptr;          // EVP_PKEY
  void* certificate_ = nullptr;  // X509
};

}  // namespace te::test
