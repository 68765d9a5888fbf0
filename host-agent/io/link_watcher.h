// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <boost/asio/awaitable.hpp>
#include <boost/asio/io_context.hpp>
#include <boost/asio/posix/stream_descriptor.hpp>
#include <boost/asio/steady_timer.hpp>
#include <cstdint>
#include <functional>
#include <map>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "common/netlink/link_socket.h"
#include "host-agent/core/link_board.h"
#include "host-agent/io/net_namespaces.h"

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

  /// `nics`: the interfaces to watch; empty: all of the agent's own network namespace but the loopback. `send`: false
  /// when the controller cannot take it now.
  LinkWatcher(boost::asio::io_context& io, std::span<const NicName> nics, NetNamespaces& namespaces,
              std::function<bool(const v1::LinkUpdate&)> send);

  /// Starts to listen and reads all interfaces. An Error when that fails in any namespace: the others are watched.
  Result<void> open();
  /// Whether any namespace is watched.
  [[nodiscard]] bool is_watching() const { return opened_; }
  /// Starts the loops of what open() could open.
  void start();
  /// The controller knows nothing yet: sends all of them.
  void session_began();
  void stop();
  /// A namespace ended: its interfaces are gone, and nothing of it is held any more.
  void leave(const std::string& netns);

  /// As of LinkBoard, over all namespaces.
  [[nodiscard]] std::size_t present() const;
  [[nodiscard]] std::size_t with_carrier() const;
  [[nodiscard]] std::uint64_t carrier_losses() const;
  [[nodiscard]] std::uint64_t left_out() const;
  [[nodiscard]] const Counts& counts() const { return counts_; }

 private:
  /// The interfaces of one network namespace: indices and names are its own.
  struct Place {
    Place(boost::asio::io_context& io, std::string netns, const std::vector<NicName>& nics);

    std::string netns;
    std::map<std::string, std::string> ports;  // what the controller is told, by interface
    LinkBoard board;
    std::optional<netlink::LinkMonitor> monitor;  // none: not opened, or left
    boost::asio::posix::stream_descriptor news;
    boost::asio::steady_timer pause;
  };

  Result<void> open(Place& place);
  boost::asio::awaitable<void> hear(Place& place);
  boost::asio::awaitable<void> tick();
  void read_all(Place& place);
  void take_news(Place& place);
  void tell_all();
  void tell_changes(Place& place);
  static void add(const Place& place, v1::LinkUpdate links, v1::LinkUpdate& update);

  boost::asio::io_context& io_;
  NetNamespaces& namespaces_;
  std::function<bool(const v1::LinkUpdate&)> send_;
  std::vector<std::unique_ptr<Place>> places_;  // all stay until the end: loops refer to them
  boost::asio::steady_timer second_;
  Counts counts_;
  bool opened_ = false;
  bool stopped_ = false;
};

}  // namespace te::agent
