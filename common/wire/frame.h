// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <google/protobuf/message_lite.h>

#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

#include "common/base/result.h"

namespace te {

/// Largest body of a frame in bytes; a peer that announces more is refused.
inline constexpr std::size_t kMaxFrameBytes = std::size_t{8} << 20;

/// A frame: length of the body (32 bits, network order), then the body, one serialised protobuf message.
[[nodiscard]] std::string encode_frame(const google::protobuf::MessageLite& message);

/// Cuts a byte stream into frame bodies.
class FrameDecoder {
 public:
  /// Appends received bytes.
  void feed(std::string_view bytes) { buffer_.append(bytes); }
  /// The next complete body, none when more bytes are needed; an Error once the stream is unusable (oversized frame).
  Result<std::optional<std::string>> next();
  /// True when next() has something to say.
  [[nodiscard]] bool has_next() const;

 private:
  std::string buffer_;
  std::size_t begin_ = 0;
};

}  // namespace te
