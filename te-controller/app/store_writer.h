// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <boost/asio/io_context.hpp>
#include <boost/asio/steady_timer.hpp>
#include <boost/asio/thread_pool.hpp>
#include <memory>
#include <string>

#include "te-controller/app/store.h"
#include "te-controller/engine/persistent_state.h"

namespace te {

/// Writes to the store in a thread of its own, so that a slow disk delays no decision. What comes while a write runs is
/// merged: the newest wins. A failed write is kept and tried again with the next, a second later at the latest;
/// problem() says so meanwhile.
class StoreWriter {
 public:
  StoreWriter(boost::asio::io_context& io, std::unique_ptr<Store> store);
  StoreWriter(const StoreWriter&) = delete;
  StoreWriter& operator=(const StoreWriter&) = delete;
  ~StoreWriter();

  void write(PersistentChange change);
  /// Writes what is left, waiting for it. After this write() does nothing.
  void finish();
  [[nodiscard]] bool is_writing() const { return writing_ != nullptr; }
  /// Why the last write failed; empty: it did not.
  [[nodiscard]] const std::string& problem() const { return problem_; }
  /// Ledger entries given up because the disk failed for too long.
  [[nodiscard]] std::uint64_t moves_lost() const { return moves_lost_; }

 private:
  void start();
  void merge(PersistentChange change);
  void written(const std::string& problem);
  void try_again_later();

  boost::asio::io_context* io_;
  std::unique_ptr<Store> store_;
  boost::asio::thread_pool thread_{1};
  boost::asio::steady_timer retry_;
  PersistentChange waiting_;
  std::shared_ptr<PersistentChange> writing_;  ///< the thread's while not null
  std::string problem_;
  std::uint64_t moves_lost_ = 0;
  bool finished_ = false;
  std::shared_ptr<bool> alive_ = std::make_shared<bool>(true);
};

}  // namespace te
