// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <functional>
#include <string>
#include <vector>

#include "te-controller/app/event_log.h"
#include "te-controller/app/http_message.h"
#include "te-controller/engine/engine.h"
#include "te-controller/engine/views.h"

namespace te {

/// The HTTP API of api.proto, without the transport and without asking who may (see Gate). On the io_context's thread.
class Api {
 public:
  struct Surroundings {
    std::string version;
    std::string topology;                                ///< where the fabric came from
    std::function<std::vector<std::string>()> warnings;  ///< of the program around the engine
    std::function<void()> wake;                          ///< after a call that changed something
    std::function<std::int64_t()> now_ns;
    const EventLog* events = nullptr;  ///< null: there are none
  };

  /// `engine` outlives it.
  Api(Engine& engine, Surroundings surroundings);
  [[nodiscard]] HttpReply answer(const HttpRequest& request);

 private:
  [[nodiscard]] HttpReply get(const HttpRequest& request);
  [[nodiscard]] HttpReply post(const HttpRequest& request);
  [[nodiscard]] HttpReply post_override(const HttpRequest& request);
  [[nodiscard]] v1::Status status();

  Engine* engine_;
  Views views_;
  Surroundings surroundings_;
};

}  // namespace te
