// SPDX-License-Identifier: Apache-2.0
#include "common/net/certificates.h"

#include <openssl/asn1.h>
#include <openssl/bn.h>
#include <openssl/evp.h>
#include <openssl/pem.h>
#include <openssl/rand.h>
#include <openssl/sha.h>
#include <openssl/x509.h>
#include <openssl/x509v3.h>

#include <algorithm>
#include <array>
#include <ctime>

#include "common/net/openssl_pointers.h"

namespace te {
namespace {

constexpr int kSerialBits = 127;           // positive, 16 bytes
constexpr std::int64_t kClockSkewS = 300;  // another machine's clock may be behind by this much
constexpr int kListDays = 3650;
constexpr std::size_t kPrintableBytes = 80;
constexpr int kLeastSecurityBits = 112;  // RSA 2048, EC P-224

Result<X509Ptr> read_certificate(std::string_view pem, const std::string& of) {
  const BioPtr bio = reading(pem);
  X509Ptr certificate(PEM_read_bio_X509(bio.get(), nullptr, nullptr, nullptr));
  if (!certificate) return Error{of + " holds no PEM certificate"};
  return certificate;
}

Result<KeyPtr> read_key(std::string_view pem) {
  const BioPtr bio = reading(pem);
  std::array<char, 1> no_password{};  // a key with a password is refused rather than asked for on the terminal
  KeyPtr key(PEM_read_bio_PrivateKey(bio.get(), nullptr, nullptr, no_password.data()));
  if (!key) return openssl_error("read a private key");
  return key;
}

Result<RequestPtr> read_request(std::string_view pem) {
  const BioPtr bio = reading(pem);
  RequestPtr request(PEM_read_bio_X509_REQ(bio.get(), nullptr, nullptr, nullptr));
  if (!request) return Error{"there is no PEM certificate request"};
  EVP_PKEY* key = X509_REQ_get0_pubkey(request.get());
  if (key == nullptr) return Error{"the certificate request has no public key that can be used"};
  if (EVP_PKEY_get_security_bits(key) < kLeastSecurityBits)
    return Error{"the certificate request's key is weak; make an EC P-256 key"};
  if (X509_REQ_verify(request.get(), key) != 1) return Error{"the certificate request is not signed by its own key"};
  return request;
}

std::string hex_of(const ASN1_INTEGER* serial) {
  const NumberPtr number(ASN1_INTEGER_to_BN(serial, nullptr));
  const OpensslText text(BN_bn2hex(number.get()));
  return text ? std::string(text.get()) : std::string();
}

Result<std::string> common_name(const X509_NAME* subject, const std::string& of) {
  std::array<char, 256> name{};
  const int length = X509_NAME_get_text_by_NID(subject, NID_commonName, name.data(), static_cast<int>(name.size()));
  if (length <= 0) return Error{of + " has no common name"};
  std::string text(name.data(), static_cast<std::size_t>(length));
  if (text.find('\0') != std::string::npos) return Error{of + " has a NUL byte in its common name"};
  return text;
}

bool set_name(X509_NAME* subject, const std::string& name) {
  return X509_NAME_add_entry_by_txt(subject, "CN", MBSTRING_UTF8, reinterpret_cast<const unsigned char*>(name.c_str()),
                                    -1, -1, 0) == 1;
}

bool add_extension(X509* certificate, const X509* issuer, int nid, const std::string& value) {
  X509V3_CTX context;
  X509V3_set_ctx(&context, const_cast<X509*>(issuer), certificate, nullptr, nullptr, 0);
  const ExtensionPtr extension(X509V3_EXT_conf_nid(nullptr, &context, nid, value.c_str()));
  return extension && X509_add_ext(certificate, extension.get(), -1) == 1;
}

/// Version, a random serial number, times, names and key. `issuer` may be the certificate itself.
bool begin_certificate(X509* certificate, EVP_PKEY* key, const std::string& name, const X509* issuer, int days) {
  const NumberPtr serial(BN_new());
  return X509_set_version(certificate, X509_VERSION_3) == 1 &&
         BN_rand(serial.get(), kSerialBits, BN_RAND_TOP_ANY, BN_RAND_BOTTOM_ANY) == 1 &&
         BN_to_ASN1_INTEGER(serial.get(), X509_get_serialNumber(certificate)) != nullptr &&
         X509_gmtime_adj(X509_getm_notBefore(certificate), -kClockSkewS) != nullptr &&
         X509_time_adj_ex(X509_getm_notAfter(certificate), days, 0, nullptr) != nullptr &&
         set_name(X509_get_subject_name(certificate), name) &&
         X509_set_issuer_name(certificate, X509_get_subject_name(issuer)) == 1 &&
         X509_set_pubkey(certificate, key) == 1;
}

/// "IP:10.0.0.5,DNS:te.example"; an Error: no address or host name, which might say more than it should.
Result<std::string> alternative_names(const std::vector<std::string>& hosts) {
  std::string text;
  for (const std::string& host : hosts) {
    const OctetsPtr address(a2i_IPADDRESS(host.c_str()));
    if (!address && !is_certificate_name(host)) return Error{"'" + host + "' is neither an address nor a host name"};
    text += (text.empty() ? "" : ",") + std::string(address ? "IP:" : "DNS:") + host;
  }
  return text;
}

}  // namespace

bool is_certificate_name(std::string_view name) {
  const auto plain = [](char letter) {
    return (letter >= 'a' && letter <= 'z') || (letter >= 'A' && letter <= 'Z') || (letter >= '0' && letter <= '9') ||
           letter == '.' || letter == '_' || letter == '-';
  };
  return !name.empty() && name.size() <= 64 && name.front() != '.' && name.front() != '-' &&
         std::all_of(name.begin(), name.end(), plain);
}

std::string printable(std::string_view text) {
  std::string shown(text.substr(0, kPrintableBytes));
  for (char& letter : shown) {
    const auto byte = static_cast<unsigned char>(letter);
    if (byte < 0x20 || byte == 0x7F) letter = '?';
  }
  return shown;
}

Result<CertificateFacts> facts_of(const X509* certificate, const std::string& of) {
  auto name = common_name(X509_get_subject_name(certificate), of);
  if (!name) return std::move(name).error();
  CertificateFacts facts;
  facts.name = *std::move(name);
  facts.serial = hex_of(X509_get0_serialNumber(certificate));
  std::tm until{};
  if (ASN1_TIME_to_tm(X509_get0_notAfter(certificate), &until) == 1) facts.not_after_s = ::timegm(&until);
  return facts;
}

Result<CertificateFacts> facts_of_pem(std::string_view pem, const std::string& of) {
  const auto certificate = read_certificate(pem, of);
  if (!certificate) return certificate.error();
  return facts_of(certificate->get(), of);
}

Result<std::string> make_private_key() {
  const KeyPtr key(EVP_PKEY_Q_keygen(nullptr, nullptr, "EC", "P-256"));
  const BioPtr bio(BIO_new(BIO_s_mem()));
  if (!key || PEM_write_bio_PrivateKey(bio.get(), key.get(), nullptr, nullptr, 0, nullptr, nullptr) != 1)
    return openssl_error("make a private key");
  return text_of(bio.get());
}

Result<std::string> make_request(const std::string& key_pem, const std::string& name) {
  const auto key = read_key(key_pem);
  if (!key) return key.error();
  const RequestPtr request(X509_REQ_new());
  const BioPtr bio(BIO_new(BIO_s_mem()));
  if (!set_name(X509_REQ_get_subject_name(request.get()), name) ||
      X509_REQ_set_pubkey(request.get(), key->get()) != 1 ||
      X509_REQ_sign(request.get(), key->get(), EVP_sha256()) == 0 ||
      PEM_write_bio_X509_REQ(bio.get(), request.get()) != 1) {
    return openssl_error("make a certificate request");
  }
  return text_of(bio.get());
}

Result<std::string> requested_name(std::string_view request_pem) {
  const auto request = read_request(request_pem);
  if (!request) return request.error();
  return common_name(X509_REQ_get_subject_name(request->get()), "the certificate request");
}

Result<std::set<std::string>> revoked_serials(std::string_view crl_pem) {
  std::set<std::string> serials;
  if (crl_pem.empty()) return serials;
  const BioPtr bio = reading(crl_pem);
  const CrlPtr list(PEM_read_bio_X509_CRL(bio.get(), nullptr, nullptr, nullptr));
  if (!list) return Error{"there is no PEM certificate revocation list"};
  const STACK_OF(X509_REVOKED)* revoked = X509_CRL_get_REVOKED(list.get());
  for (int i = 0; i < sk_X509_REVOKED_num(revoked); ++i)
    serials.insert(hex_of(X509_REVOKED_get0_serialNumber(sk_X509_REVOKED_value(revoked, i))));
  return serials;
}

Result<KeyAndCertificate> make_root(const std::string& name, int days) {
  auto key_pem = make_private_key();
  if (!key_pem) return std::move(key_pem).error();
  const auto key = read_key(*key_pem);
  if (!key) return key.error();
  const X509Ptr certificate(X509_new());
  X509* const root = certificate.get();
  const BioPtr bio(BIO_new(BIO_s_mem()));
  if (!begin_certificate(root, key->get(), name, root, days) ||
      !add_extension(root, root, NID_basic_constraints, "critical,CA:TRUE,pathlen:0") ||
      !add_extension(root, root, NID_key_usage, "critical,keyCertSign,cRLSign") ||
      !add_extension(root, root, NID_subject_key_identifier, "hash") ||
      X509_sign(root, key->get(), EVP_sha256()) == 0 || PEM_write_bio_X509(bio.get(), root) != 1) {
    return openssl_error("make a certificate authority");
  }
  return KeyAndCertificate{.key = *std::move(key_pem), .certificate = text_of(bio.get())};
}

Result<Signer> Signer::load(const std::string& certificate_pem, const std::string& key_pem) {
  auto certificate = read_certificate(certificate_pem, "the authority's certificate file");
  if (!certificate) return std::move(certificate).error();
  auto key = read_key(key_pem);
  if (!key) return with_context(std::move(key).error(), "the authority's key");
  if (X509_check_private_key(certificate->get(), key->get()) != 1)
    return Error{"the authority's key is not that of its certificate"};
  return Signer(*std::move(certificate), *std::move(key));
}

Result<std::string> Signer::certify(std::string_view request_pem, const CertificateOrder& order) const {
  const auto request = read_request(request_pem);
  if (!request) return request.error();
  const auto names = alternative_names(order.hosts);
  if (!names) return names.error();
  const X509Ptr certificate(X509_new());
  X509* const made = certificate.get();
  const X509* const issuer = certificate_.get();
  const char* const usage = order.use == CertificateUse::kServer ? "serverAuth" : "clientAuth";
  const BioPtr bio(BIO_new(BIO_s_mem()));
  if (!begin_certificate(made, X509_REQ_get0_pubkey(request->get()), order.name, issuer, order.days) ||
      !add_extension(made, issuer, NID_basic_constraints, "critical,CA:FALSE") ||
      !add_extension(made, issuer, NID_key_usage, "critical,digitalSignature") ||
      !add_extension(made, issuer, NID_ext_key_usage, usage) ||
      !add_extension(made, issuer, NID_subject_key_identifier, "hash") ||
      !add_extension(made, issuer, NID_authority_key_identifier, "keyid,issuer") ||
      (!names->empty() && !add_extension(made, issuer, NID_subject_alt_name, *names)) ||
      X509_sign(made, key_.get(), EVP_sha256()) == 0 || PEM_write_bio_X509(bio.get(), made) != 1) {
    return openssl_error("sign a certificate for " + order.name);
  }
  return text_of(bio.get());
}

Result<std::string> Signer::revocation_list(const std::set<std::string>& serials) const {
  const CrlPtr list(X509_CRL_new());
  const TimePtr now(X509_gmtime_adj(nullptr, -kClockSkewS));
  const TimePtr later(X509_time_adj_ex(nullptr, kListDays, 0, nullptr));
  const IntegerPtr number(ASN1_INTEGER_new());
  bool good = X509_CRL_set_version(list.get(), X509_CRL_VERSION_2) == 1 &&
              X509_CRL_set_issuer_name(list.get(), X509_get_subject_name(certificate_.get())) == 1 &&
              X509_CRL_set1_lastUpdate(list.get(), now.get()) == 1 &&
              X509_CRL_set1_nextUpdate(list.get(), later.get()) == 1 &&
              ASN1_INTEGER_set_int64(number.get(), std::time(nullptr)) == 1 &&
              X509_CRL_add1_ext_i2d(list.get(), NID_crl_number, number.get(), 0, 0) == 1;
  for (const std::string& serial : serials) {
    BIGNUM* parsed = nullptr;
    const bool hexadecimal = BN_hex2bn(&parsed, serial.c_str()) == static_cast<int>(serial.size());
    const NumberPtr value(parsed);
    if (!hexadecimal) return Error{"'" + serial + "' is no serial number"};
    const IntegerPtr integer(BN_to_ASN1_INTEGER(value.get(), nullptr));
    X509_REVOKED* entry = X509_REVOKED_new();
    good = good && X509_REVOKED_set_serialNumber(entry, integer.get()) == 1 &&
           X509_REVOKED_set_revocationDate(entry, now.get()) == 1;
    good = X509_CRL_add0_revoked(list.get(), entry) == 1 && good;
  }
  const BioPtr bio(BIO_new(BIO_s_mem()));
  if (!good || X509_CRL_sort(list.get()) != 1 || X509_CRL_sign(list.get(), key_.get(), EVP_sha256()) == 0 ||
      PEM_write_bio_X509_CRL(bio.get(), list.get()) != 1) {
    return openssl_error("sign a certificate revocation list");
  }
  return text_of(bio.get());
}

std::string sha256_hex(std::string_view text) {
  std::array<unsigned char, SHA256_DIGEST_LENGTH> digest{};
  SHA256(reinterpret_cast<const unsigned char*>(text.data()), text.size(), digest.data());
  return hexadecimal_of({reinterpret_cast<const char*>(digest.data()), digest.size()});
}

Result<std::string> random_hex(int bytes) {
  std::string random(static_cast<std::size_t>(bytes), '\0');
  if (RAND_bytes(reinterpret_cast<unsigned char*>(random.data()), bytes) != 1)
    return openssl_error("make a random number");
  return hexadecimal_of(random);
}

}  // namespace te
