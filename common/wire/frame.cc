// SPDX-License-Identifier: Apache-2.0
#include "common/wire/frame.h"

namespace te {
namespace {

constexpr std::size_t kHeaderBytes = 4;

std::size_t read_length(std::string_view header) {
  std::size_t length = 0;
  for (std::size_t i = 0; i < kHeaderBytes; ++i) length = length << 8 | static_cast<std::uint8_t>(header[i]);
  return length;
}

}  // namespace

std::string encode_frame(const google::protobuf::MessageLite& message) {
  const std::size_t length = message.ByteSizeLong();
  TE_CHECK(length <= kMaxFrameBytes, "message of " + std::to_string(length) + " bytes does not fit a frame");
  std::string frame;
  frame.reserve(kHeaderBytes + length);
  for (const unsigned shift : {24U, 16U, 8U, 0U}) frame.push_back(static_cast<char>(length >> shift & 0xFF));
  message.AppendToString(&frame);
  return frame;
}

bool FrameDecoder::has_next() const {
  const std::string_view waiting = std::string_view(buffer_).substr(begin_);
  if (waiting.size() < kHeaderBytes) return false;
  const std::size_t length = read_length(waiting);
  return length > kMaxFrameBytes || waiting.size() - kHeaderBytes >= length;
}

Result<std::optional<std::string>> FrameDecoder::next() {
  const std::string_view waiting = std::string_view(buffer_).substr(begin_);
  if (waiting.size() < kHeaderBytes) return std::optional<std::string>();
  const std::size_t length = read_length(waiting);
  if (length > kMaxFrameBytes) {
    return Error{"peer announced a frame of " + std::to_string(length) + " bytes; the limit is " +
                 std::to_string(kMaxFrameBytes)};
  }
  if (waiting.size() < kHeaderBytes + length) return std::optional<std::string>();
  std::optional<std::string> body(std::string(waiting.substr(kHeaderBytes, length)));
  begin_ += kHeaderBytes + length;
  if (begin_ >= buffer_.size() / 2) {  // amortised: each byte moves at most once
    buffer_.erase(0, begin_);
    begin_ = 0;
  }
  return body;
}

}  // namespace te
