// SPDX-License-Identifier: Apache-2.0
// What an agent sends, after TLS: a byte stream of frames into the engine.
#include <cstddef>
#include <cstdint>

#include "common/wire/frame.h"
#include "te-controller/engine/engine.h"
#include "topology/builder.h"

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  constexpr std::int64_t kStepNs = 30'000'000;
  std::int64_t now_ns = 1'000'000'000'000;
  te::EngineOptions options;
  options.initial_mode = te::Mode::kAct;
  te::Engine engine(te::build_clos({}), options, now_ns, 1'700'000'000'000'000);
  te::v1::Hello hello;
  hello.set_protocol_version(1);
  (void)engine.on_hello("h1", hello, now_ns);
  te::FrameDecoder decoder;
  decoder.feed({reinterpret_cast<const char*>(data), size});
  while (true) {
    const auto body = decoder.next();
    if (!body || !*body) return 0;
    te::v1::AgentMessage message;
    if (!message.ParseFromString(**body)) return 0;
    now_ns += kStepNs;
    if (message.has_hello()) (void)engine.on_hello("h1", message.hello(), now_ns);
    if (!message.has_hello() && !engine.on_message("h1", message, now_ns)) return 0;
    engine.tick(now_ns, 1'700'000'000'000'000 + now_ns / 1000);
    (void)engine.take_outgoing(now_ns);
    if (const auto job = engine.begin_cycle(now_ns)) {
      engine.finish_cycle({.job = job, .plan = te::traffic::plan(*job->fabric, job->input)}, now_ns);
    }
    (void)engine.take_changes();
  }
}
