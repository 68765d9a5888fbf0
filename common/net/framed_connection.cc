// SPDX-License-Identifier: Apache-2.0
#include "common/net/framed_connection.h"

#include <boost/asio/buffer.hpp>
#include <boost/asio/redirect_error.hpp>
#include <boost/asio/use_awaitable.hpp>
#include <boost/asio/write.hpp>
#include <utility>

namespace te {

namespace asio = boost::asio;

FramedConnection::FramedConnection(TlsStream stream, std::size_t queue_limit_bytes)
    : stream_(std::move(stream)),
      wake_(stream_.get_executor(), asio::steady_timer::time_point::max()),
      idle_(stream_.get_executor()),
      chunk_(std::make_unique<std::array<char, 16384>>()),
      queue_limit_bytes_(queue_limit_bytes) {}

asio::awaitable<Result<std::string>> FramedConnection::read(std::chrono::milliseconds idle_limit) {
  const auto self = shared_from_this();
  while (true) {
    auto body = decoder_.next();
    if (!body) co_return std::move(body).error();
    if (*body) co_return std::move(**body);
    if (!open_) co_return Error{"connection closed"};
    ++waits_;
    watch_silence(idle_limit);
    boost::system::error_code failed;
    const std::size_t got =
        co_await stream_.async_read_some(asio::buffer(*chunk_), asio::redirect_error(asio::use_awaitable, failed));
    ++waits_;
    idle_.cancel();
    if (idle_expired_) co_return Error{"nothing received for " + std::to_string(idle_limit.count()) + " ms"};
    if (failed) {
      peer_left_ = failed == asio::error::eof;
      close();
      co_return Error{"connection lost: " + failed.message()};
    }
    decoder_.feed({chunk_->data(), got});
  }
}

bool FramedConnection::input_waits() {
  boost::system::error_code failed;
  return decoder_.has_next() || (open_ && stream_.lowest_layer().available(failed) > 0);
}

/// Ends the wait of a read() for a peer that sends nothing.
void FramedConnection::watch_silence(std::chrono::milliseconds limit) {
  idle_.expires_after(limit);
  // An expiry already queued when its read ended belongs to no later read.
  idle_.async_wait([self = shared_from_this(), limit, wait = waits_](const boost::system::error_code& aborted) {
    if (aborted || !self->open_ || wait != self->waits_) return;
    if (self->input_waits()) return self->watch_silence(limit);  // all of this thread came late
    self->idle_expired_ = true;
    self->close();
  });
}

bool FramedConnection::send(const google::protobuf::MessageLite& message) {
  if (!open_) return false;
  std::string frame = encode_frame(message);
  if (queued_bytes_ + frame.size() > queue_limit_bytes_ && !queue_.empty()) return false;
  queued_bytes_ += frame.size();
  queue_.push_back(std::move(frame));
  wake_.cancel();
  return true;
}

asio::awaitable<void> FramedConnection::run_writer(std::shared_ptr<FramedConnection> self) {
  while (self->open_) {
    boost::system::error_code failed;
    if (self->queue_.empty()) {
      self->wake_.expires_at(asio::steady_timer::time_point::max());
      co_await self->wake_.async_wait(asio::redirect_error(asio::use_awaitable, failed));
      continue;
    }
    const std::string frame = std::move(self->queue_.front());
    self->queue_.pop_front();
    co_await asio::async_write(self->stream_, asio::buffer(frame), asio::redirect_error(asio::use_awaitable, failed));
    self->queued_bytes_ -= frame.size();
    if (failed) self->close();
  }
}

void FramedConnection::close() {
  if (!open_) return;
  open_ = false;
  boost::system::error_code ignored;
  stream_.lowest_layer().shutdown(asio::ip::tcp::socket::shutdown_both, ignored);
  stream_.lowest_layer().close(ignored);
  wake_.cancel();
  idle_.cancel();
}

}  // namespace te
