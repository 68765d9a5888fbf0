// SPDX-License-Identifier: Apache-2.0
#include "te-controller/app/reloader.h"

#include <spdlog/spdlog.h>

#include <boost/asio/co_spawn.hpp>
#include <boost/asio/detached.hpp>
#include <boost/asio/redirect_error.hpp>
#include <boost/asio/use_awaitable.hpp>
#include <chrono>
#include <csignal>

namespace te {

namespace asio = boost::asio;

namespace {

constexpr std::chrono::seconds kInterval{1};

}  // namespace

Reloader::Reloader(asio::io_context& io) : io_(&io), signal_(io, SIGHUP), timer_(io) {}

void Reloader::add(std::string what, Refresh refresh, std::function<void()> then) {
  items_.push_back({std::move(what), std::move(refresh), std::move(then), ""});
}

void Reloader::start() {
  wait_for_signal();
  asio::co_spawn(*io_, look_every_second(), asio::detached);
}

void Reloader::stop() {
  stopped_ = true;
  signal_.cancel();
  timer_.cancel();
}

void Reloader::wait_for_signal() {
  signal_.async_wait([this](const boost::system::error_code& cancelled, int) {
    if (cancelled || stopped_) return;
    spdlog::info("SIGHUP: reading certificates, revocation lists and tokens again");
    refresh(true);
    wait_for_signal();
  });
}

asio::awaitable<void> Reloader::look_every_second() {
  while (!stopped_) {
    timer_.expires_after(kInterval);
    boost::system::error_code cancelled;
    co_await timer_.async_wait(asio::redirect_error(asio::use_awaitable, cancelled));
    if (!stopped_) refresh(false);
  }
}

void Reloader::refresh(bool always) {
  for (Item& item : items_) {
    const auto done = item.refresh(always);
    if (!done) {
      item.problem =
          item.what + ": the files on disk cannot be used, the old ones stay in use: " + done.error().message;
      spdlog::warn("{}", item.problem);
    } else if (*done) {
      item.problem.clear();
      spdlog::info("{}: new files are in use", item.what);
      item.then();
    }
  }
}

std::vector<std::string> Reloader::warnings() const {
  std::vector<std::string> all;
  for (const Item& item : items_)
    if (!item.problem.empty()) all.push_back(item.problem);
  return all;
}

}  // namespace te
