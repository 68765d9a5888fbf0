// SPDX-License-Identifier: Apache-2.0
#include "tests/support/certificates.h"

#include <openssl/evp.h>
#include <openssl/pem.h>
#include <openssl/x509.h>
#include <openssl/x509v3.h>

#include <cstdio>
#include <cstdlib>
#include <filesystem>
#include <memory>

namespace te::test {
namespace {

EVP_PKEY* new_key() {
  EVP_PKEY* key = EVP_PKEY_Q_keygen(nullptr, nullptr, "EC", "P-256");
  TE_CHECK(key != nullptr, "cannot make a key");
  return key;
}

void write_pem(const std::string& path, EVP_PKEY* key, X509* certificate) {
  std::FILE* file = std::fopen(path.c_str(), "w");
  TE_CHECK(file != nullptr, "cannot write " + path);
  if (key != nullptr) PEM_write_PrivateKey(file, key, nullptr, nullptr, 0, nullptr, nullptr);
  if (certificate != nullptr) PEM_write_X509(file, certificate);
  std::fclose(file);
}

X509* new_certificate(const std::string& name, EVP_PKEY* subject, X509* issuer, EVP_PKEY* issuer_key) {
  static long serial = 0;
  X509* certificate = X509_new();
  X509_set_version(certificate, 2);
  ASN1_INTEGER_set(X509_get_serialNumber(certificate), ++serial);
  X509_gmtime_adj(X509_getm_notBefore(certificate), -60);
  X509_gmtime_adj(X509_getm_notAfter(certificate), 3600);
  X509_NAME_add_entry_by_txt(X509_get_subject_name(certificate), "CN", MBSTRING_ASC,
                             reinterpret_cast<const unsigned char*>(name.c_str()), -1, -1, 0);
  X509_set_issuer_name(certificate, X509_get_subject_name(issuer == nullptr ? certificate : issuer));
  X509_set_pubkey(certificate, subject);
  if (issuer == nullptr) {
    X509_EXTENSION* extension = X509V3_EXT_conf_nid(nullptr, nullptr, NID_basic_constraints, "critical,CA:TRUE");
    X509_add_ext(certificate, extension, -1);
    X509_EXTENSION_free(extension);
  }
  X509_sign(certificate, issuer_key, EVP_sha256());
  return certificate;
}

}  // namespace

CertificateAuthority::CertificateAuthority() {
  std::string pattern = (std::filesystem::temp_directory_path() / "te-test-ca-XXXXXX").string();
  TE_CHECK(::mkdtemp(pattern.data()) != nullptr, "cannot make a temporary folder");
  folder_ = pattern;
  EVP_PKEY* key = new_key();
  X509* certificate = new_certificate("te-test-ca", key, nullptr, key);
  write_pem(folder_ + "/ca.pem", nullptr, certificate);
  key_ = key;
  certificate_ = certificate;
}

CertificateAuthority::~CertificateAuthority() {
  X509_free(static_cast<X509*>(certificate_));
  EVP_PKEY_free(static_cast<EVP_PKEY*>(key_));
  std::error_code ignored;
  std::filesystem::remove_all(folder_, ignored);
}

TlsFiles CertificateAuthority::issue(const std::string& common_name) {
  TlsFiles files{folder_ + "/" + common_name + ".pem", folder_ + "/" + common_name + ".key", folder_ + "/ca.pem"};
  EVP_PKEY* key = new_key();
  X509* certificate = new_certificate(common_name, key, static_cast<X509*>(certificate_), static_cast<EVP_PKEY*>(key_));
  write_pem(files.certificate, nullptr, certificate);
  write_pem(files.key, key, nullptr);
  X509_free(certificate);
  EVP_PKEY_free(key);
  return files;
}

}  // namespace te::test
