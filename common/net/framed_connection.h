// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <array>
#include <boost/asio/awaitable.hpp>
#include <boost/asio/steady_timer.hpp>
#include <chrono>
#include <cstdint>
#include <deque>
#include <memory>
#include <string>

#include "common/base/result.h"
#include "common/net/tls.h"
#include "common/wire/frame.h"

namespace te {

/// One TLS connection that carries frames. All of it runs on the stream's executor (one thread or a strand). Keep it in
/// a shared_ptr: run_writer() and read() hold a reference while they wait.
class FramedConnection : public std::enable_shared_from_this<FramedConnection> {
 public:
  /// `stream`: handshake done. `queue_limit_bytes`: waiting output above which send() refuses.
  FramedConnection(TlsStream stream, std::size_t queue_limit_bytes);

  /// The next frame's body; an Error when the peer closed, broke the protocol, or sent nothing for `idle_limit`.
  boost::asio::awaitable<Result<std::string>> read(std::chrono::milliseconds idle_limit);
  /// Queues a message; false when the queue is full (the caller counts or coalesces) or the connection is closed.
  bool send(const google::protobuf::MessageLite& message);
  /// Writes what send() queues until close() or an error; spawn once. Owns the connection from the call on: a coroutine
  /// is spawned before it runs.
  static boost::asio::awaitable<void> run_writer(std::shared_ptr<FramedConnection> self);
  /// Ends reader and writer; idempotent.
  void close();

  [[nodiscard]] std::size_t queued_bytes() const { return queued_bytes_; }
  [[nodiscard]] bool is_open() const { return open_; }
  /// The peer said that it ends the connection, rather than that it was lost.
  [[nodiscard]] bool peer_left() const { return peer_left_; }
  /// Received and not read yet: the peer is not silent, we are slow.
  [[nodiscard]] bool input_waits();

 private:
  void watch_silence(std::chrono::milliseconds limit);

  TlsStream stream_;
  boost::asio::steady_timer wake_;
  boost::asio::steady_timer idle_;
  std::unique_ptr<std::array<char, 16384>> chunk_;  ///< what is read at once: a TLS record at most
  FrameDecoder decoder_;
  std::deque<std::string> queue_;
  std::size_t queued_bytes_ = 0;
  std::size_t queue_limit_bytes_;
  std::uint64_t waits_ = 0;
  bool idle_expired_ = false;
  bool open_ = true;
  bool peer_left_ = false;
};

}  // namespace te
