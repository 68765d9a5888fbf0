// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <boost/asio/awaitable.hpp>
#include <boost/asio/io_context.hpp>
#include <memory>

#include "common/net/tls.h"
#include "host-agent/core/agent_config.h"

namespace te::agent {

/// Connects within 5 s, shakes hands and looks at the controller's name. Who closes what `connecting` holds meanwhile
/// ends it.
boost::asio::awaitable<Result<TlsStream>> connect_to_controller(boost::asio::io_context& io,
                                                                std::shared_ptr<boost::asio::ssl::context> tls,
                                                                Endpoint controller,
                                                                std::weak_ptr<TlsStream>& connecting);

/// Whether a controller can be reached and takes this node's certificate; opens no session. Waits, on a loop of its
/// own.
Result<void> probe_controller(const std::shared_ptr<boost::asio::ssl::context>& tls, const Endpoint& controller);

}  // namespace te::agent
