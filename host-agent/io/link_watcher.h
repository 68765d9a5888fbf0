// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <boost/asio/awaitable.hpp>
#include <boost/asio/io_context.hpp>
#include <boost/asio/posix/stream_descriptor.hpp>
#include <boost/asio/steady_timer.hpp>
#include <cstdint>
#include <functional>
#include <optional>
#include <string>
#include <vector>

#include "common/netlink/link_socket.h"
#include "host-agent/core/link_board.h"

namespace te::agent {

/// Tells the controller of this node's network interfaces: all when a session begins and once a second, changed states
/// at once. All of it runs on the io_context's one thread.
class LinkWatcher {
 public:
  struct Counts {
    std::uint64_t updates = 0;        ///< handed to the controller's session
    std::uint64_t messages = 0;       ///< changes that the kernel told
    std::uint64_t messages_lost = 0;  ///< times that it had more than the socket could hold; all were read again
    std::uint64_t read_failures = 0;  ///< lists that could not be read
  };

  /// `interfaces`: as LinkBoard takes them. `send`: false when the controller cannot take it now.
  LinkWatcher(boost::asio::io_context& io, std::vector<std::string> interfaces,
              std::function<bool(const v1::LinkUpdate&)> send);

  /// Starts to listen and reads all interfaces; for the network namespace of the calling thread.
  Result<void> open();
  /// Starts the loops; open() must have succeeded.
  void start();
  /// The controller knows nothing yet: sends all of them.
  void session_began();
  void stop();

  [[nodiscard]] const LinkBoard& board() const { return board_; }
  [[nodiscard]] const Counts& counts() const { return counts_; }

 private:
  boost::asio::awaitable<void> hear();
  boost::asio::awaitable<void> tick();
  void read_all();
  void take_news();
  void tell(const v1::LinkUpdate& update);

  boost::asio::io_context& io_;
  std::function<bool(const v1::LinkUpdate&)> send_;
  LinkBoard board_;
  std::optional<netlink::LinkMonitor> monitor_;
  boost::asio::posix::stream_descriptor news_;
  boost::asio::steady_timer pause_;
  boost::asio::steady_timer second_;
  Counts counts_;
  bool stopped_ = false;
};

}  // namespace te::agent
