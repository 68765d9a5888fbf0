// SPDX-License-Identifier: Apache-2.0
#include "common/net/tls.h"

#include <openssl/pem.h>
#include <openssl/ssl.h>

#include "common/net/openssl_pointers.h"
#include "common/os/file.h"

namespace te {

namespace ssl = boost::asio::ssl;

namespace {

using ContextPtr = std::shared_ptr<ssl::context>;

ContextPtr new_context(ssl::context::method method) {
  auto context = std::make_shared<ssl::context>(method);
  SSL_CTX_set_min_proto_version(context->native_handle(), TLS1_3_VERSION);
  return context;
}

Result<void> trust(ssl::context& context, const std::string& ca) {
  boost::system::error_code failed;
  context.load_verify_file(ca, failed);
  if (failed) return Error{"use certificate authority " + ca + ": " + failed.message()};
  return {};
}

/// Every list of a PEM file counts; an authority without a list is an error at each handshake.
Result<void> use_revocation_lists(ssl::context& context, const std::string& path) {
  const auto pem = read_file(path);
  if (!pem) return pem.error();
  X509_STORE* const store = SSL_CTX_get_cert_store(context.native_handle());
  const BioPtr bio = reading(*pem);
  int lists = 0;
  while (true) {
    const CrlPtr list(PEM_read_bio_X509_CRL(bio.get(), nullptr, nullptr, nullptr));
    if (!list) break;
    if (X509_STORE_add_crl(store, list.get()) != 1) return openssl_error("use revocation list " + path);
    ++lists;
  }
  const bool at_end = ERR_GET_REASON(ERR_peek_last_error()) == PEM_R_NO_START_LINE;
  ERR_clear_error();
  if (lists == 0 || !at_end) return Error{"use revocation list " + path + ": it is no PEM certificate revocation list"};
  X509_STORE_set_flags(store, X509_V_FLAG_CRL_CHECK);
  return {};
}

}  // namespace

Result<ContextPtr> make_tls_context(const TlsFiles& files, TlsSide side, PeerCertificate wanted) {
  auto context = new_context(side == TlsSide::kServer ? ssl::context::tls_server : ssl::context::tls_client);
  boost::system::error_code failed;
  context->use_certificate_chain_file(files.certificate, failed);
  if (failed) return Error{"use certificate " + files.certificate + ": " + failed.message()};
  context->use_private_key_file(files.key, ssl::context::pem, failed);
  if (failed) return Error{"use private key " + files.key + ": " + failed.message()};
  if (const auto trusted = trust(*context, files.ca); !trusted) return trusted.error();
  if (!files.crl.empty()) {
    if (const auto used = use_revocation_lists(*context, files.crl); !used) return used.error();
  }
  const auto required = wanted == PeerCertificate::kRequired ? ssl::verify_fail_if_no_peer_cert : ssl::verify_mode{0};
  context->set_verify_mode(ssl::verify_peer | required, failed);
  if (failed) return Error{"ask for the peer's certificate: " + failed.message()};
  // Resumed sessions would carry an identity past a reload of the revocation list.
  SSL_CTX_set_session_cache_mode(context->native_handle(), SSL_SESS_CACHE_OFF);
  SSL_CTX_set_num_tickets(context->native_handle(), 0);
  return context;
}

Result<ContextPtr> make_tls_context_without_certificate(const std::string& ca) {
  auto context = new_context(ssl::context::tls_client);
  if (const auto trusted = trust(*context, ca); !trusted) return trusted.error();
  boost::system::error_code failed;
  context->set_verify_mode(ssl::verify_peer, failed);
  if (failed) return Error{"ask for the peer's certificate: " + failed.message()};
  return context;
}

Result<std::string> peer_common_name(TlsStream& stream) {
  auto peer = peer_identity(stream.native_handle());
  if (!peer) return std::move(peer).error();
  return std::move(peer->facts.name);
}

Result<std::string> certificate_common_name(const std::string& path) {
  auto pem = read_file(path);
  if (!pem) return std::move(pem).error();
  auto facts = facts_of_pem(*pem, path);
  if (!facts) return std::move(facts).error();
  return std::move(facts->name);
}

Result<PeerIdentity> peer_identity(SSL* connection) {
  PeerIdentity peer;
  peer.certificate = X509Ptr(SSL_get1_peer_certificate(connection));
  if (!peer.certificate) return Error{"the peer showed no certificate"};
  auto facts = facts_of(peer.certificate.get(), "the peer's certificate");
  if (!facts) return std::move(facts).error();
  peer.facts = *std::move(facts);
  if (STACK_OF(X509)* const chain = SSL_get_peer_cert_chain(connection); chain != nullptr) {
    peer.chain = {X509_chain_up_ref(chain), [](STACK_OF(X509) * own) { sk_X509_pop_free(own, X509_free); }};
  }
  return peer;
}

Result<void> check_again(const PeerIdentity& peer, ssl::context& context) {
  const std::unique_ptr<X509_STORE_CTX, FreedBy<&X509_STORE_CTX_free>> check(X509_STORE_CTX_new());
  X509_STORE* const store = SSL_CTX_get_cert_store(context.native_handle());
  if (X509_STORE_CTX_init(check.get(), store, peer.certificate.get(), peer.chain.get()) != 1 ||
      X509_STORE_CTX_set_default(check.get(), "ssl_client") != 1) {
    return openssl_error("check a certificate");
  }
  if (X509_verify_cert(check.get()) == 1) return {};
  ERR_clear_error();
  return Error{X509_verify_cert_error_string(X509_STORE_CTX_get_error(check.get()))};
}

std::function<bool(bool, ssl::verify_context&)> note_problem(std::shared_ptr<CertificateProblem> problem) {
  return [problem = std::move(problem)](bool good, ssl::verify_context& verified) {
    if (good) return true;
    X509_STORE_CTX* const check = verified.native_handle();
    const int error = X509_STORE_CTX_get_error(check);
    problem->reason = X509_verify_cert_error_string(error);
    problem->revoked = error == X509_V_ERR_CERT_REVOKED;
    const X509* const shown = X509_STORE_CTX_get0_cert(check);
    const auto facts = shown == nullptr ? Result<CertificateFacts>(Error{}) : facts_of(shown, "");
    if (facts) problem->name = facts->name;
    if (facts) problem->serial = facts->serial;
    return false;
  };
}

std::string CertificateProblem::text(const std::string& otherwise) const {
  if (reason.empty()) return otherwise;
  return "certificate of '" + printable(name) + "', serial " + serial + ": " + reason;
}

}  // namespace te
