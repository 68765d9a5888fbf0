// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <boost/asio/io_context.hpp>
#include <boost/asio/ip/tcp.hpp>
#include <optional>

#include "common/net/tls.h"

namespace te::test {

/// Two ends of a TLS connection over loopback; `client_error` and `server_error` say how the handshakes ended.
struct TlsPair {
  boost::asio::io_context io;
  std::shared_ptr<boost::asio::ssl::context> server_context;
  std::shared_ptr<boost::asio::ssl::context> client_context;
  std::optional<TlsStream> server;
  std::optional<TlsStream> client;
  boost::system::error_code server_error;
  boost::system::error_code client_error;
  std::shared_ptr<CertificateProblem> problem = std::make_shared<CertificateProblem>();  ///< that the server saw

  void connect(const TlsFiles& server_files, const TlsFiles& client_files) {
    using boost::asio::ip::tcp;
    server_context = make_tls_context(server_files, TlsSide::kServer).value();
    client_context = make_tls_context(client_files, TlsSide::kClient).value();
    tcp::acceptor acceptor(io, tcp::endpoint(boost::asio::ip::address_v4::loopback(), 0));
    tcp::socket near(io);
    near.connect(acceptor.local_endpoint());
    server.emplace(acceptor.accept(), *server_context);
    client.emplace(std::move(near), *client_context);
    server->set_verify_callback(note_problem(problem));
    server->async_handshake(boost::asio::ssl::stream_base::server,
                            [this](const boost::system::error_code& failed) { server_error = failed; });
    client->async_handshake(boost::asio::ssl::stream_base::client,
                            [this](const boost::system::error_code& failed) { client_error = failed; });
    io.run();
    io.restart();
  }
};

}  // namespace te::test
