// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <boost/asio/awaitable.hpp>
#include <boost/asio/io_context.hpp>
#include <boost/asio/signal_set.hpp>
#include <boost/asio/steady_timer.hpp>
#include <functional>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "common/base/result.h"

namespace te {

/// Brings files that change while the program runs into use: looks once a second, and at once on SIGHUP. What cannot be
/// used is told, and the old stays in use.
class Reloader {
 public:
  /// Reads its files again if they changed, or if told to read them always; true when something new is in use.
  using Refresh = std::function<Result<bool>(bool always)>;

  explicit Reloader(boost::asio::io_context& io);
  /// `what` names it in the log; `then` is called after each success.
  void add(
      std::string what, Refresh refresh, std::function<void()> then = [] {});
  void start();
  void stop();
  /// Looks now.
  void refresh(bool always);
  /// For people: what could not be brought into use.
  [[nodiscard]] std::vector<std::string> warnings() const;

 private:
  struct Item {
    std::string what;
    Refresh refresh;
    std::function<void()> then;
    std::string problem;
  };
  boost::asio::awaitable<void> look_every_second();
  void wait_for_signal();

  boost::asio::io_context* io_;
  boost::asio::signal_set signal_;
  boost::asio::steady_timer timer_;
  std::vector<Item> items_;
  bool stopped_ = false;
};

}  // namespace te
