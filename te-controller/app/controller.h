// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <boost/asio/awaitable.hpp>
#include <boost/asio/io_context.hpp>
#include <boost/asio/steady_timer.hpp>
#include <boost/asio/thread_pool.hpp>
#include <map>
#include <string>

#include "te-controller/app/agent_server.h"
#include "te-controller/app/event_log.h"
#include "te-controller/app/store_writer.h"
#include "te-controller/engine/engine.h"

namespace te {

/// The shell around the engine: brings it messages and the time, sends what it decides, has plans computed in another
/// thread, stores what changed. Everything but the planning runs on the io_context's one thread.
class Controller final : public AgentListener {
 public:
  /// All outlive it.
  Controller(boost::asio::io_context& io, Engine& engine, AgentServer& agents, StoreWriter& store, EventLog& events);
  Controller(const Controller&) = delete;
  Controller& operator=(const Controller&) = delete;
  ~Controller() override;

  /// Begins to tick.
  void start();
  /// No more ticks and plans; steering stays as it is. Waits for a plan that is being computed.
  void stop();
  /// Acts at once on what changed (an operator's call): sends, stores, plans. With many agents, when that takes long, a
  /// little later, so that there is time left for what they say.
  void wake();

  v1::HelloReply on_hello(const std::string& node, const v1::Hello& hello) override;
  Result<void> on_message(const std::string& node, const v1::AgentMessage& message) override;
  Result<void> on_flows(const std::string& node, const FlowNews& news) override;
  void on_gone(const std::string& node) override;

 private:
  boost::asio::awaitable<void> tick_loop();
  void pump();
  void pump_soon();
  void plan();
  void look_at_store();
  void log_moves(const PersistentChange& change);

  boost::asio::io_context* io_;
  Engine* engine_;
  AgentServer* agents_;
  StoreWriter* store_;
  EventLog* events_;
  boost::asio::steady_timer timer_;
  boost::asio::steady_timer pump_timer_;
  boost::asio::thread_pool planner_{1};
  std::map<int, std::string> logged_;  ///< state of moves, as last logged
  bool pump_posted_ = false;
  std::int64_t rest_until_ns_ = 0;  ///< no pump for a mere message before
  bool stopped_ = false;
};

}  // namespace te
