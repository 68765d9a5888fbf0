// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <openssl/bio.h>
#include <openssl/bn.h>
#include <openssl/crypto.h>
#include <openssl/err.h>
#include <openssl/evp.h>
#include <openssl/x509.h>
#include <openssl/x509v3.h>

#include <array>
#include <memory>
#include <string>
#include <string_view>

#include "common/base/result.h"

/// Owners of OpenSSL's objects, and texts from and to its BIOs; for sources of common/net only.
namespace te {

template <auto kFree>
struct FreedBy {
  template <class T>
  void operator()(T* object) const {
    kFree(object);
  }
};

struct OpensslFree {
  void operator()(void* memory) const { OPENSSL_free(memory); }
};

using BioPtr = std::unique_ptr<BIO, FreedBy<&BIO_free>>;
using CrlPtr = std::unique_ptr<X509_CRL, FreedBy<&X509_CRL_free>>;
using ExtensionPtr = std::unique_ptr<X509_EXTENSION, FreedBy<&X509_EXTENSION_free>>;
using IntegerPtr = std::unique_ptr<ASN1_INTEGER, FreedBy<&ASN1_INTEGER_free>>;
using KeyPtr = std::unique_ptr<EVP_PKEY, FreedBy<&EVP_PKEY_free>>;
using NumberPtr = std::unique_ptr<BIGNUM, FreedBy<&BN_free>>;
using OctetsPtr = std::unique_ptr<ASN1_OCTET_STRING, FreedBy<&ASN1_OCTET_STRING_free>>;
using OpensslText = std::unique_ptr<char, OpensslFree>;
using RequestPtr = std::unique_ptr<X509_REQ, FreedBy<&X509_REQ_free>>;
using TimePtr = std::unique_ptr<ASN1_TIME, FreedBy<&ASN1_TIME_free>>;
using X509Ptr = std::unique_ptr<X509, FreedBy<&X509_free>>;

/// `text` outlives it.
inline BioPtr reading(std::string_view text) {
  return BioPtr(BIO_new_mem_buf(text.data(), static_cast<int>(text.size())));
}

inline std::string text_of(BIO* bio) {
  char* begin = nullptr;
  const long length = BIO_get_mem_data(bio, &begin);
  return {begin, static_cast<std::size_t>(length)};
}

inline std::string hexadecimal_of(std::string_view bytes) {
  constexpr std::string_view kDigits = "0123456789abcdef";
  std::string text;
  for (const char byte : bytes) {
    const auto value = static_cast<unsigned char>(byte);
    text += {kDigits[value >> 4U], kDigits[value & 0xFU]};
  }
  return text;
}

/// What OpenSSL says went wrong; empties its queue of errors.
inline Error openssl_error(const std::string& doing) {
  std::array<char, 256> text{};
  const unsigned long code = ERR_get_error();
  ERR_error_string_n(code, text.data(), text.size());
  ERR_clear_error();
  return Error{doing + ": " + (code == 0 ? "it cannot be read" : text.data())};
}

}  // namespace te
