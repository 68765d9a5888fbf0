// SPDX-License-Identifier: Apache-2.0
#include "host-agent/io/link_watcher.h"

#include <spdlog/spdlog.h>
#include <unistd.h>

#include <boost/asio/co_spawn.hpp>
#include <boost/asio/detached.hpp>
#include <boost/asio/redirect_error.hpp>
#include <boost/asio/use_awaitable.hpp>
#include <chrono>
#include <numeric>
#include <utility>

#include "common/os/file.h"

namespace te::agent {

namespace asio = boost::asio;

namespace {

constexpr std::chrono::seconds kBetweenLists{1};
// The first change goes at once; what follows it within this time goes together.
constexpr std::chrono::milliseconds kBetweenUpdates{5};

/// Names to watch; one namespace with all of it when there are none.
std::vector<std::string> names_of(const std::vector<NicName>& nics) {
  std::vector<std::string> names;
  for (const NicName& nic : nics) names.push_back(nic.interface);
  return names;
}

}  // namespace

LinkWatcher::Place::Place(asio::io_context& io, std::string netns_path, const std::vector<NicName>& nics)
    : netns(std::move(netns_path)), board(names_of(nics)), news(io), pause(io) {
  for (const NicName& nic : nics) ports[nic.interface] = nic.port_name();
}

LinkWatcher::LinkWatcher(asio::io_context& io, std::span<const NicName> nics, NetNamespaces& namespaces,
                         std::function<bool(const v1::LinkUpdate&)> send)
    : io_(io), namespaces_(namespaces), send_(std::move(send)), second_(io) {
  std::map<std::string, std::vector<NicName>> by_netns;
  for (const NicName& nic : nics) by_netns[nic.netns].push_back(nic);
  if (nics.empty()) by_netns[""];
  for (const auto& [netns, here] : by_netns) places_.push_back(std::make_unique<Place>(io, netns, here));
}

Result<void> LinkWatcher::open() {
  Result<void> outcome;
  for (const auto& place : places_) {
    auto opened = open(*place);
    opened_ |= opened.ok();
    if (!opened && outcome) outcome = std::move(opened);
  }
  return outcome;
}

Result<void> LinkWatcher::open(Place& place) {
  Result<netlink::LinkMonitor> monitor = Error{};
  Result<std::vector<netlink::LinkMessage>> links = Error{};
  // Listening first: what changes while the list is read is heard too.
  auto entered = namespaces_.run_in(place.netns, [&] {
    monitor = netlink::LinkMonitor::open();
    links = netlink::read_links();
  });
  if (!entered) return entered;
  if (!monitor) return std::move(monitor).error();
  if (!links) return std::move(links).error();
  place.board.take_all(*links);
  place.monitor.emplace(*std::move(monitor));
  // asio closes the descriptor that it waits on, so it gets one of its own.
  const int news = ::dup(place.monitor->fd());
  if (news < 0) return errno_error("wait for changes of network interfaces");
  place.news.assign(news);
  return {};
}

void LinkWatcher::start() {
  if (!opened_) return;
  for (const auto& place : places_) {
    if (place->news.is_open()) asio::co_spawn(io_, hear(*place), asio::detached);
  }
  asio::co_spawn(io_, tick(), asio::detached);
}

void LinkWatcher::stop() {
  stopped_ = true;
  boost::system::error_code ignored;
  for (const auto& place : places_) {
    place->news.close(ignored);
    place->pause.cancel();
  }
  second_.cancel();
}

void LinkWatcher::leave(const std::string& netns) {
  for (const auto& place : places_) {
    if (place->netns != netns) continue;
    boost::system::error_code ignored;
    place->news.close(ignored);
    place->pause.cancel();
    place->monitor.reset();
    place->board.take_all({});
    tell_changes(*place);
  }
}

void LinkWatcher::session_began() {
  if (opened_) tell_all();
}

asio::awaitable<void> LinkWatcher::hear(Place& place) {
  while (!stopped_) {
    boost::system::error_code failed;
    co_await place.news.async_wait(asio::posix::stream_descriptor::wait_read,
                                   asio::redirect_error(asio::use_awaitable, failed));
    if (failed || !place.monitor) co_return;
    take_news(place);
    if (place.board.changes().links_size() == 0) continue;
    tell_changes(place);
    place.pause.expires_after(kBetweenUpdates);
    co_await place.pause.async_wait(asio::redirect_error(asio::use_awaitable, failed));
  }
}

asio::awaitable<void> LinkWatcher::tick() {
  while (!stopped_) {
    second_.expires_after(kBetweenLists);
    boost::system::error_code failed;
    co_await second_.async_wait(asio::redirect_error(asio::use_awaitable, failed));
    if (stopped_) co_return;
    for (const auto& place : places_) {
      if (place->monitor) read_all(*place);
    }
    tell_all();
  }
}

void LinkWatcher::read_all(Place& place) {
  Result<std::vector<netlink::LinkMessage>> links = Error{};
  if (auto entered = namespaces_.run_in(place.netns, [&] { links = netlink::read_links(); }); !entered)
    links = std::move(entered).error();
  if (links) return place.board.take_all(*links);
  ++counts_.read_failures;
  spdlog::warn("{}", links.error().message);
}

void LinkWatcher::take_news(Place& place) {
  const auto news = place.monitor->take();
  if (!news) {
    ++counts_.read_failures;
    spdlog::warn("{}", news.error().message);
    return read_all(place);
  }
  counts_.messages += news->changed.size() + news->removed.size();
  for (const netlink::LinkMessage& link : news->changed) place.board.take(link);
  for (const std::uint32_t ifindex : news->removed) place.board.remove(ifindex);
  if (!news->lost) return;
  ++counts_.messages_lost;
  read_all(place);
}

void LinkWatcher::add(const Place& place, v1::LinkUpdate links, v1::LinkUpdate& update) {
  for (v1::LinkReport& link : *links.mutable_links()) {
    if (const auto port = place.ports.find(link.interface()); port != place.ports.end())
      link.set_interface(port->second);
    link.set_netns(place.netns);
    *update.add_links() = std::move(link);
  }
}

void LinkWatcher::tell_all() {
  v1::LinkUpdate update;
  update.set_complete(true);
  for (const auto& place : places_) add(*place, place->board.all(), update);
  if (!send_(update)) return;  // what changed stays changed
  ++counts_.updates;
  for (const auto& place : places_) place->board.mark_told();
}

void LinkWatcher::tell_changes(Place& place) {
  v1::LinkUpdate update;
  add(place, place.board.changes(), update);
  if (!send_(update)) return;
  ++counts_.updates;
  place.board.mark_told();
}

std::size_t LinkWatcher::present() const {
  return std::accumulate(places_.begin(), places_.end(), std::size_t{0},
                         [](std::size_t sum, const auto& place) { return sum + place->board.present(); });
}

std::size_t LinkWatcher::with_carrier() const {
  return std::accumulate(places_.begin(), places_.end(), std::size_t{0},
                         [](std::size_t sum, const auto& place) { return sum + place->board.with_carrier(); });
}

std::uint64_t LinkWatcher::carrier_losses() const {
  return std::accumulate(places_.begin(), places_.end(), std::uint64_t{0},
                         [](std::uint64_t sum, const auto& place) { return sum + place->board.carrier_losses(); });
}

std::uint64_t LinkWatcher::left_out() const {
  return std::accumulate(places_.begin(), places_.end(), std::uint64_t{0},
                         [](std::uint64_t sum, const auto& place) { return sum + place->board.left_out(); });
}

}  // namespace te::agent
