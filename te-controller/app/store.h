// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "common/base/result.h"
#include "common/os/unique_fd.h"
#include "te-controller/engine/persistent_state.h"

struct sqlite3;

namespace te {

/// The controller's memory on disk: mode, desired steering of each node and the ledger of moves, in SQLite (WAL). The
/// ledger keeps the last `ledger_limit` moves. One thread at a time, and one process: it holds a lock on PATH.lock.
class Store {
 public:
  /// Opens or makes the database; an Error when the file is no database of ours, cannot be written or is in use.
  static Result<std::unique_ptr<Store>> open(const std::string& path, std::int64_t ledger_limit = 100000);
  Store(const Store&) = delete;
  Store& operator=(const Store&) = delete;
  ~Store();

  /// All that was stored, with the newest `moves_limit` moves, oldest first.
  Result<PersistentState> load(std::int64_t moves_limit);
  /// Writes what changed in one transaction: all of it or nothing.
  Result<void> save(const PersistentChange& change);

 private:
  Store(sqlite3* database, UniqueFd lock, std::string path, std::int64_t ledger_limit)
      : database_(database), lock_(std::move(lock)), path_(std::move(path)), ledger_limit_(ledger_limit) {}
  Result<void> prepare_tables();
  Result<void> execute(const std::string& sql);
  Result<void> save_in_transaction(const PersistentChange& change);
  [[nodiscard]] Error failure(const std::string& doing) const;

  sqlite3* database_;
  UniqueFd lock_;
  std::string path_;
  std::int64_t ledger_limit_;
};

}  // namespace te
