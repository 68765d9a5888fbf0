// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <memory>
#include <string>
#include <vector>

#include "te-controller/app/agent_server.h"
#include "te-controller/app/gate.h"
#include "te-controller/app/http_message.h"
#include "te-controller/app/http_server.h"
#include "te-controller/app/store_writer.h"
#include "te-controller/engine/engine.h"
#include "te-controller/engine/views.h"

namespace te {

/// /metrics in Prometheus' text format and /healthz. Values are read off the controller at each request. On the
/// io_context's thread.
class Metrics {
 public:
  /// All outlive it.
  Metrics(Engine& engine, const AgentServer& agents, const StoreWriter& store);
  Metrics(const Metrics&) = delete;
  Metrics& operator=(const Metrics&) = delete;
  ~Metrics();

  /// What the API's side counts; all outlive it.
  void watch(const Gate& gate, const Enrolment& enrolment, const std::vector<std::unique_ptr<HttpServer>>& servers);
  [[nodiscard]] HttpReply answer(const HttpRequest& request, std::int64_t now_ns);

 private:
  struct Families;
  void refresh(std::int64_t now_ns);
  void refresh_api();

  Engine* engine_;
  Views views_;
  const AgentServer* agents_;
  const StoreWriter* store_;
  const Gate* gate_ = nullptr;
  const Enrolment* enrolment_ = nullptr;
  std::vector<const HttpServer*> servers_;
  std::unique_ptr<Families> families_;
};

}  // namespace te
