// SPDX-License-Identifier: Apache-2.0
#include "te-controller/app/store_writer.h"

#include <spdlog/spdlog.h>

#include <boost/asio/post.hpp>
#include <chrono>
#include <utility>

namespace te {

namespace asio = boost::asio;

namespace {

constexpr std::size_t kMovesWaiting = 10000;
constexpr std::chrono::seconds kRetry{1};

}  // namespace

StoreWriter::StoreWriter(asio::io_context& io, std::unique_ptr<Store> store)
    : io_(&io), store_(std::move(store)), retry_(io) {}

StoreWriter::~StoreWriter() { finish(); }

/// `change` is newer than what waits.
void StoreWriter::merge(PersistentChange change) {
  if (change.mode) waiting_.mode = change.mode;
  if (change.resume_mode) waiting_.resume_mode = change.resume_mode;
  if (change.overrides) waiting_.overrides = std::move(change.overrides);
  for (auto& [node, set] : change.steering) waiting_.steering.insert_or_assign(node, std::move(set));
  for (auto& [number, move] : change.moves) waiting_.moves.insert_or_assign(number, std::move(move));
  while (waiting_.moves.size() > kMovesWaiting) {
    waiting_.moves.erase(waiting_.moves.begin());
    ++moves_lost_;
  }
}

void StoreWriter::write(PersistentChange change) {
  if (finished_ || change.empty()) return;
  merge(std::move(change));
  if (!writing_) start();
}

void StoreWriter::start() {
  writing_ = std::make_shared<PersistentChange>(std::exchange(waiting_, {}));
  asio::post(thread_, [this, writing = writing_, alive = alive_, io = io_, store = store_.get()] {
    const auto saved = store->save(*writing);
    asio::post(*io, [this, alive, problem = saved ? std::string() : saved.error().message] {
      if (*alive) written(problem);
    });
  });
}

void StoreWriter::written(const std::string& problem) {
  if (!problem.empty() && problem_.empty()) spdlog::error("{}; going on without, will try again", problem);
  if (problem.empty() && !problem_.empty()) spdlog::info("the state database can be written again");
  problem_ = problem;
  const std::shared_ptr<PersistentChange> done = std::exchange(writing_, nullptr);
  if (!problem.empty()) {
    PersistentChange newer = std::exchange(waiting_, std::move(*done));
    merge(std::move(newer));
    try_again_later();
  } else if (!waiting_.empty()) {
    start();
  }
}

void StoreWriter::try_again_later() {
  retry_.expires_after(kRetry);
  retry_.async_wait([this, alive = alive_](const boost::system::error_code& aborted) {
    if (!aborted && *alive && !writing_ && !waiting_.empty()) start();
  });
}

void StoreWriter::finish() {
  if (std::exchange(finished_, true)) return;
  *alive_ = false;
  retry_.cancel();
  thread_.join();
  if (waiting_.empty()) return;
  const auto saved = store_->save(waiting_);
  if (!saved) spdlog::error("{}; the newest decisions are not stored", saved.error().message);
}

}  // namespace te
