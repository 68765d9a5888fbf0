// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "common/base/result.h"
#include "common/net/certificates.h"

namespace te {

/// A certificate authority kept in a directory:
///   ca.pem, ca.key (mode 0600), crl.pem, issued/SERIAL.pem, tokens/HASH (see EnrolmentTokens).
class Authority {
 public:
  /// Makes the directory and the authority. An Error when there is one already.
  static Result<Authority> create(const std::string& directory, int days);
  static Result<Authority> open(const std::string& directory);

  /// Signs the key of a request and keeps a copy of the certificate, so that it can be listed and revoked.
  [[nodiscard]] Result<std::string> certify(std::string_view request_pem, const CertificateOrder& order) const;

  struct Entry {
    CertificateFacts facts;
    bool revoked = false;
  };
  /// All that was ever issued, by name, then by time.
  [[nodiscard]] Result<std::vector<Entry>> list() const;
  /// Puts every good certificate of a name, or the one with a serial number, on the revocation list; returns them. An
  /// Error when there is none.
  [[nodiscard]] Result<std::vector<CertificateFacts>> revoke(const std::string& name_or_serial) const;

  [[nodiscard]] const std::string& certificate() const { return certificate_; }  ///< PEM

 private:
  Authority(std::string directory, std::string certificate, Signer signer)
      : directory_(std::move(directory)), certificate_(std::move(certificate)), signer_(std::move(signer)) {}

  std::string directory_;
  std::string certificate_;
  Signer signer_;
};

enum class TokenFault : std::uint8_t { kNone, kUnknown, kUsed, kExpired, kOtherNode };
[[nodiscard]] std::string_view to_string(TokenFault fault);

/// One-time enrolment tokens of an authority's directory. A file each, named by the token's SHA-256; the token itself
/// is kept nowhere. A used one is renamed, which only one of several can do.
class EnrolmentTokens {
 public:
  explicit EnrolmentTokens(std::string authority_directory) : directory_(std::move(authority_directory) + "/tokens") {}

  /// A new token for a node, 32 hexadecimal digits.
  [[nodiscard]] Result<std::string> make(const std::string& node, std::int64_t lifetime_s, std::int64_t now_s) const;
  /// Whether the token lets `node` enrol at `now_s`.
  [[nodiscard]] TokenFault check(const std::string& token, const std::string& node, std::int64_t now_s) const;
  /// Uses it up. An Error: somebody else just did, or the directory cannot be written.
  [[nodiscard]] Result<void> use_up(const std::string& token) const;

 private:
  void forget_old(std::int64_t now_s) const;

  std::string directory_;
};

}  // namespace te
