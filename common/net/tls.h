// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <boost/asio/ip/tcp.hpp>
#include <boost/asio/ssl/context.hpp>
#include <boost/asio/ssl/stream.hpp>
#include <functional>
#include <memory>
#include <string>

#include "common/base/result.h"
#include "common/net/certificates.h"

namespace te {

/// PEM files of one end of a mutually authenticated connection.
struct TlsFiles {
  std::string certificate;  ///< this end's chain
  std::string key;
  std::string ca;     ///< who signs the other end's certificate
  std::string crl{};  ///< what they have revoked, one list for each of them; empty: not looked at
};

enum class TlsSide { kServer, kClient };
/// Whether a server's peer must show a certificate, or may.
enum class PeerCertificate { kRequired, kOptional };

using TlsStream = boost::asio::ssl::stream<boost::asio::ip::tcp::socket>;

/// TLS 1.3 only; what the peer shows must be signed by `ca` and not be on `crl`. Errors name the file that could not be
/// used.
Result<std::shared_ptr<boost::asio::ssl::context>> make_tls_context(
    const TlsFiles& files, TlsSide side, PeerCertificate wanted = PeerCertificate::kRequired);
/// Of a client that trusts `ca` and shows no certificate of its own.
Result<std::shared_ptr<boost::asio::ssl::context>> make_tls_context_without_certificate(const std::string& ca);

/// Common name of the certificate that the peer of a finished handshake showed; an Error when there is none.
Result<std::string> peer_common_name(TlsStream& stream);
/// Common name of a certificate file's first certificate: a program checks its own name at start.
Result<std::string> certificate_common_name(const std::string& path);

/// What the peer of a finished handshake showed.
struct PeerIdentity {
  CertificateFacts facts;
  std::shared_ptr<X509> certificate;
  std::shared_ptr<STACK_OF(X509)> chain;  ///< what it showed beside; may be null
};
/// An Error: it showed none.
Result<PeerIdentity> peer_identity(SSL* connection);
/// Whether a client's certificate is still good by a (newer) context of the server: signed, not expired, not revoked.
Result<void> check_again(const PeerIdentity& peer, boost::asio::ssl::context& context);

/// Why a peer's certificate was refused.
struct CertificateProblem {
  std::string name;  ///< what the certificate says; not to be trusted
  std::string serial;
  std::string reason;  ///< empty: nothing was wrong with it
  bool revoked = false;

  /// "certificate of 'h1', serial 4A: certificate revoked", with `otherwise` when the certificate was not the reason.
  [[nodiscard]] std::string text(const std::string& otherwise) const;
};
/// For a stream's set_verify_callback(): leaves the decision to OpenSSL, and notes why it was no.
std::function<bool(bool, boost::asio::ssl::verify_context&)> note_problem(std::shared_ptr<CertificateProblem> problem);

}  // namespace te
