// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <boost/asio/ip/tcp.hpp>
#include <boost/asio/ssl/context.hpp>
#include <boost/asio/ssl/stream.hpp>
#include <memory>
#include <string>

#include "common/base/result.h"

namespace te {

/// PEM files of one end of a mutually authenticated connection.
struct TlsFiles {
  std::string certificate;  ///< this end's chain
  std::string key;
  std::string ca;  ///< who signs the other end's certificate
};

enum class TlsSide { kServer, kClient };

using TlsStream = boost::asio::ssl::stream<boost::asio::ip::tcp::socket>;

/// TLS 1.3 only; the peer must show a certificate that `ca` signed. Errors name the file that could not be used.
Result<std::shared_ptr<boost::asio::ssl::context>> make_tls_context(const TlsFiles& files, TlsSide side);

/// Common name of the certificate that the peer of a finished handshake showed; an Error when there is none.
Result<std::string> peer_common_name(TlsStream& stream);
/// Common name of a certificate file's first certificate: a program checks its own name at start.
Result<std::string> certificate_common_name(const std::string& path);

}  // namespace te
