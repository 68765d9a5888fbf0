// SPDX-License-Identifier: Apache-2.0
// However a stream is cut, the decoder gives the same frames, and never more bytes than it was fed.
#include "common/wire/frame.h"

#include <cstdint>
#include <string>
#include <vector>

namespace {

std::vector<std::string> decode(std::string_view stream, std::size_t piece) {
  te::FrameDecoder decoder;
  std::vector<std::string> bodies;
  while (!stream.empty()) {
    decoder.feed(stream.substr(0, piece));
    stream.remove_prefix(std::min(piece, stream.size()));
    while (true) {
      auto body = decoder.next();
      if (!body) return bodies;
      if (!*body) break;
      bodies.push_back(**body);
    }
  }
  return bodies;
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  const std::string_view stream(reinterpret_cast<const char*>(data), size);
  TE_CHECK(decode(stream, 1) == decode(stream, size + 1), "frames depend on how the stream was cut");
  return 0;
}
