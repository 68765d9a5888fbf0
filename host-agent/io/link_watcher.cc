// SPDX-License-Identifier: Apache-2.0
#include "host-agent/io/link_watcher.h"

#include <spdlog/spdlog.h>
#include <unistd.h>

#include <boost/asio/co_spawn.hpp>
#include <boost/asio/detached.hpp>
#include <boost/asio/redirect_error.hpp>
#include <boost/asio/use_awaitable.hpp>
#include <chrono>
#include <utility>

#include "common/os/file.h"

namespace te::agent {

namespace asio = boost::asio;

namespace {

constexpr std::chrono::seconds kBetweenLists{1};
// The first change goes at once; what follows it within this time goes together.
constexpr std::chrono::milliseconds kBetweenUpdates{5};

}  // namespace

LinkWatcher::LinkWatcher(asio::io_context& io, std::vector<std::string> interfaces,
                         std::function<bool(const v1::LinkUpdate&)> send)
    : io_(io), send_(std::move(send)), board_(std::move(interfaces)), news_(io), pause_(io), second_(io) {}

Result<void> LinkWatcher::open() {
  auto monitor = netlink::LinkMonitor::open();
  if (!monitor) return std::move(monitor).error();
  // Listening first: what changes while the list is read is heard too.
  const auto links = netlink::read_links();
  if (!links) return links.error();
  board_.take_all(*links);
  monitor_.emplace(*std::move(monitor));
  // asio closes the descriptor that it waits on, so it gets one of its own.
  const int news = ::dup(monitor_->fd());
  if (news < 0) return errno_error("wait for changes of network interfaces");
  news_.assign(news);
  return {};
}

void LinkWatcher::start() {
  if (!monitor_) return;
  asio::co_spawn(io_, hear(), asio::detached);
  asio::co_spawn(io_, tick(), asio::detached);
}

void LinkWatcher::stop() {
  stopped_ = true;
  boost::system::error_code ignored;
  news_.close(ignored);
  pause_.cancel();
  second_.cancel();
}

void LinkWatcher::session_began() {
  if (monitor_) tell(board_.all());
}

asio::awaitable<void> LinkWatcher::hear() {
  while (!stopped_) {
    boost::system::error_code failed;
    co_await news_.async_wait(asio::posix::stream_descriptor::wait_read,
                              asio::redirect_error(asio::use_awaitable, failed));
    if (failed) co_return;
    take_news();
    const v1::LinkUpdate changes = board_.changes();
    if (changes.links_size() == 0) continue;
    tell(changes);
    pause_.expires_after(kBetweenUpdates);
    co_await pause_.async_wait(asio::redirect_error(asio::use_awaitable, failed));
  }
}

asio::awaitable<void> LinkWatcher::tick() {
  while (!stopped_) {
    second_.expires_after(kBetweenLists);
    boost::system::error_code failed;
    co_await second_.async_wait(asio::redirect_error(asio::use_awaitable, failed));
    if (stopped_) co_return;
    read_all();
    tell(board_.all());
  }
}

void LinkWatcher::read_all() {
  const auto links = netlink::read_links();
  if (links) return board_.take_all(*links);
  ++counts_.read_failures;
  spdlog::warn("{}", links.error().message);
}

void LinkWatcher::take_news() {
  const auto news = monitor_->take();
  if (!news) {
    ++counts_.read_failures;
    spdlog::warn("{}", news.error().message);
    return read_all();
  }
  counts_.messages += news->changed.size() + news->removed.size();
  for (const netlink::LinkMessage& link : news->changed) board_.take(link);
  for (const std::uint32_t ifindex : news->removed) board_.remove(ifindex);
  if (!news->lost) return;
  ++counts_.messages_lost;
  read_all();
}

void LinkWatcher::tell(const v1::LinkUpdate& update) {
  if (!send_(update)) return;  // what changed stays changed
  ++counts_.updates;
  board_.mark_told();
}

}  // namespace te::agent
