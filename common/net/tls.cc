// SPDX-License-Identifier: Apache-2.0
#include "common/net/tls.h"

#include <openssl/err.h>
#include <openssl/pem.h>
#include <openssl/ssl.h>
#include <openssl/x509.h>

#include <array>
#include <cstdio>

#include "common/os/file.h"

namespace te {
namespace {

using X509Ptr = std::unique_ptr<X509, decltype(&X509_free)>;

Result<std::string> common_name(const X509* certificate, const std::string& of) {
  std::array<char, 256> name{};
  const int length = X509_NAME_get_text_by_NID(X509_get_subject_name(certificate), NID_commonName, name.data(),
                                               static_cast<int>(name.size()));
  if (length <= 0) return Error{of + " has no common name"};
  const std::string text(name.data(), static_cast<std::size_t>(length));
  if (text.find('\0') != std::string::npos) return Error{of + " has a NUL byte in its common name"};
  return text;
}

}  // namespace

Result<std::shared_ptr<boost::asio::ssl::context>> make_tls_context(const TlsFiles& files, TlsSide side) {
  namespace ssl = boost::asio::ssl;
  auto context =
      std::make_shared<ssl::context>(side == TlsSide::kServer ? ssl::context::tls_server : ssl::context::tls_client);
  SSL_CTX_set_min_proto_version(context->native_handle(), TLS1_3_VERSION);
  boost::system::error_code failed;
  context->use_certificate_chain_file(files.certificate, failed);
  if (failed) return Error{"use certificate " + files.certificate + ": " + failed.message()};
  context->use_private_key_file(files.key, ssl::context::pem, failed);
  if (failed) return Error{"use private key " + files.key + ": " + failed.message()};
  context->load_verify_file(files.ca, failed);
  if (failed) return Error{"use certificate authority " + files.ca + ": " + failed.message()};
  context->set_verify_mode(ssl::verify_peer | ssl::verify_fail_if_no_peer_cert, failed);
  if (failed) return Error{"ask for the peer's certificate: " + failed.message()};
  return context;
}

Result<std::string> peer_common_name(TlsStream& stream) {
  const X509Ptr certificate(SSL_get1_peer_certificate(stream.native_handle()), &X509_free);
  if (!certificate) return Error{"the peer showed no certificate"};
  return common_name(certificate.get(), "the peer's certificate");
}

Result<std::string> certificate_common_name(const std::string& path) {
  auto pem = read_file(path);
  if (!pem) return std::move(pem).error();
  const std::unique_ptr<BIO, decltype(&BIO_free)> bio(BIO_new_mem_buf(pem->data(), static_cast<int>(pem->size())),
                                                      &BIO_free);
  const X509Ptr certificate(PEM_read_bio_X509(bio.get(), nullptr, nullptr, nullptr), &X509_free);
  if (!certificate) return Error{path + " holds no PEM certificate"};
  return common_name(certificate.get(), path);
}

}  // namespace te
