// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <openssl/types.h>

#include <cstdint>
#include <memory>
#include <set>
#include <string>
#include <string_view>
#include <vector>

#include "common/base/result.h"

namespace te {

/// What te-controller's certificate is made out to; no node has this name.
inline constexpr const char* kControllerName = "te-controller";

/// Names that certificates, files and messages can carry: letters, digits, '.', '_' and '-', 1 to 64 of them, not
/// beginning with '.' or '-'.
[[nodiscard]] bool is_certificate_name(std::string_view name);

/// Text of strangers for logs and messages: control characters become '?', and it is cut at 80 bytes.
[[nodiscard]] std::string printable(std::string_view text);

struct CertificateFacts {
  std::string name;    ///< common name
  std::string serial;  ///< hexadecimal, as OpenSSL prints it
  std::int64_t not_after_s = 0;
};

/// `of` names the certificate in errors. An Error: no common name, or one with a NUL byte.
Result<CertificateFacts> facts_of(const X509* certificate, const std::string& of);
/// Of the first certificate of a PEM text.
Result<CertificateFacts> facts_of_pem(std::string_view pem, const std::string& of);

/// A new EC P-256 key, PEM.
Result<std::string> make_private_key();
/// A certificate request for `name`, signed with its own key; PEM.
Result<std::string> make_request(const std::string& key_pem, const std::string& name);
/// The common name that a request asks for. An Error: no request, not signed by its own key, or a weak key.
Result<std::string> requested_name(std::string_view request_pem);
/// Serial numbers on a certificate revocation list (PEM); empty text: none.
Result<std::set<std::string>> revoked_serials(std::string_view crl_pem);

enum class CertificateUse : std::uint8_t { kServer, kClient };

/// What a certificate shall say.
struct CertificateOrder {
  std::string name;
  CertificateUse use = CertificateUse::kClient;
  std::vector<std::string> hosts;  ///< DNS names and addresses that a server is reached by
  int days = 365;
};

struct KeyAndCertificate {
  std::string key;  ///< PEM
  std::string certificate;
};

/// A self-signed certificate authority.
Result<KeyAndCertificate> make_root(const std::string& name, int days);

/// Signs with the key of an authority. Texts are PEM.
class Signer {
 public:
  /// An Error: unreadable, or the key is not the certificate's.
  static Result<Signer> load(const std::string& certificate_pem, const std::string& key_pem);

  /// A certificate for the key of a request. Of the request only the key counts.
  [[nodiscard]] Result<std::string> certify(std::string_view request_pem, const CertificateOrder& order) const;
  /// A list of these serial numbers, valid as long as anybody will keep it (10 years).
  [[nodiscard]] Result<std::string> revocation_list(const std::set<std::string>& serials) const;

 private:
  Signer(std::shared_ptr<X509> certificate, std::shared_ptr<EVP_PKEY> key)
      : certificate_(std::move(certificate)), key_(std::move(key)) {}

  std::shared_ptr<X509> certificate_;
  std::shared_ptr<EVP_PKEY> key_;
};

/// SHA-256, 64 lower-case hexadecimal digits.
[[nodiscard]] std::string sha256_hex(std::string_view text);
/// `bytes` random bytes in hexadecimal.
Result<std::string> random_hex(int bytes);

}  // namespace te
