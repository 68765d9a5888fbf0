// SPDX-License-Identifier: Apache-2.0
#include "te-controller/app/store.h"

#include <fcntl.h>
#include <google/protobuf/util/json_util.h>
#include <sqlite3.h>
#include <sys/file.h>

#include <cerrno>
#include <functional>
#include <utility>

#include "common/os/file.h"
#include "te-controller/engine/mode.h"

namespace te {
namespace {

constexpr int kSchemaVersion = 1;
constexpr int kBusyTimeoutMs = 2000;

/// A prepared statement; bound from left to right, finalised at the end of its life.
class Statement {
 public:
  Statement(sqlite3* database, const char* sql) : status_(sqlite3_prepare_v2(database, sql, -1, &handle_, nullptr)) {}
  Statement(const Statement&) = delete;
  Statement& operator=(const Statement&) = delete;
  ~Statement() { sqlite3_finalize(handle_); }

  Statement& bind(std::int64_t number) {
    if (status_ == SQLITE_OK) status_ = sqlite3_bind_int64(handle_, ++bound_, number);
    return *this;
  }
  Statement& bind(double number) {
    if (status_ == SQLITE_OK) status_ = sqlite3_bind_double(handle_, ++bound_, number);
    return *this;
  }
  Statement& bind(const std::string& text) {
    if (status_ == SQLITE_OK) {
      status_ = sqlite3_bind_text(handle_, ++bound_, text.data(), static_cast<int>(text.size()), SQLITE_TRANSIENT);
    }
    return *this;
  }
  /// Runs a statement that gives no rows, so that it can be bound anew.
  bool run() {
    if (status_ != SQLITE_OK) return false;
    const int outcome = sqlite3_step(handle_);
    sqlite3_reset(handle_);
    bound_ = 0;
    return outcome == SQLITE_DONE || outcome == SQLITE_ROW;
  }
  /// Calls `row` for each row; false on an error.
  bool each(const std::function<void(const Statement&)>& row) {
    if (status_ != SQLITE_OK) return false;
    int outcome = SQLITE_ROW;
    while ((outcome = sqlite3_step(handle_)) == SQLITE_ROW) row(*this);
    return outcome == SQLITE_DONE;
  }
  [[nodiscard]] std::string text(int column) const {
    const auto* bytes = sqlite3_column_text(handle_, column);
    const auto length = static_cast<std::size_t>(sqlite3_column_bytes(handle_, column));
    return bytes == nullptr ? std::string() : std::string(reinterpret_cast<const char*>(bytes), length);
  }
  [[nodiscard]] std::int64_t integer(int column) const { return sqlite3_column_int64(handle_, column); }

 private:
  sqlite3_stmt* handle_ = nullptr;
  int status_;
  int bound_ = 0;
};

std::string to_json(const google::protobuf::Message& message) {
  google::protobuf::util::JsonPrintOptions options;
  options.preserve_proto_field_names = true;
  std::string json;
  (void)google::protobuf::util::MessageToJsonString(message, &json, options);
  return json;
}

/// Fields of a newer version are passed over, so that an older program can still read the database.
bool from_json(const std::string& json, google::protobuf::Message& message) {
  google::protobuf::util::JsonParseOptions options;
  options.ignore_unknown_fields = true;
  return google::protobuf::util::JsonStringToMessage(json, &message, options).ok();
}

/// Two controllers on one database would undo each other's steering.
Result<UniqueFd> take_lock(const std::string& path) {
  UniqueFd file(::open(path.c_str(), O_RDWR | O_CREAT | O_CLOEXEC, 0640));
  if (!file) return errno_error("open " + path);
  if (::flock(file.get(), LOCK_EX | LOCK_NB) == 0) return file;
  if (errno != EWOULDBLOCK) return errno_error("lock " + path);
  return Error{"lock " + path + ": another te-controller uses this state; stop it, or name another file under 'state'"};
}

}  // namespace

Result<std::unique_ptr<Store>> Store::open(const std::string& path, std::int64_t ledger_limit) {
  auto lock = take_lock(path + ".lock");
  if (!lock) return std::move(lock).error();
  sqlite3* database = nullptr;
  const int status = sqlite3_open_v2(path.c_str(), &database,
                                     SQLITE_OPEN_READWRITE | SQLITE_OPEN_CREATE | SQLITE_OPEN_NOMUTEX, nullptr);
  std::unique_ptr<Store> store(new Store(database, *std::move(lock), path, ledger_limit));
  if (status != SQLITE_OK) return store->failure("open the state database");
  sqlite3_busy_timeout(database, kBusyTimeoutMs);
  const auto prepared = store->prepare_tables();
  if (!prepared) return prepared.error();
  return store;
}

Store::~Store() { sqlite3_close(database_); }

Error Store::failure(const std::string& doing) const {
  return Error{doing + " " + path_ + ": " + (database_ == nullptr ? "out of memory" : sqlite3_errmsg(database_))};
}

Result<void> Store::execute(const std::string& sql) {
  if (sqlite3_exec(database_, sql.c_str(), nullptr, nullptr, nullptr) != SQLITE_OK) return failure("write");
  return {};
}

Result<void> Store::prepare_tables() {
  std::int64_t version = 0;
  Statement ask(database_, "PRAGMA user_version");
  if (!ask.each([&](const Statement& row) { version = row.integer(0); })) return failure("read");
  if (version > kSchemaVersion) {
    return Error{path_ + " was written by a newer te-controller (schema " + std::to_string(version) +
                 ", this one knows " + std::to_string(kSchemaVersion) +
                 "); use that one, or name another file under 'state'"};
  }
  // WAL with synchronous=NORMAL survives a crash of the process without an fsync for each decision.
  auto set = execute("PRAGMA journal_mode=WAL; PRAGMA synchronous=NORMAL");
  if (!set || version == kSchemaVersion) return set;  // nothing to write: a full disk is no reason not to start
  return execute(
      "CREATE TABLE IF NOT EXISTS settings(name TEXT PRIMARY KEY, value TEXT NOT NULL) WITHOUT ROWID;"
      "CREATE TABLE IF NOT EXISTS steering(node TEXT PRIMARY KEY, entries TEXT NOT NULL) WITHOUT ROWID;"
      "CREATE TABLE IF NOT EXISTS moves(number INTEGER PRIMARY KEY, wall_s REAL NOT NULL, flow_id TEXT NOT NULL,"
      " state TEXT NOT NULL, view TEXT NOT NULL);"
      "PRAGMA user_version=" +
      std::to_string(kSchemaVersion));
}

Result<PersistentState> Store::load(std::int64_t moves_limit) {
  PersistentState state;
  std::string broken;
  Statement settings(database_, "SELECT name, value FROM settings");
  const bool settings_read = settings.each([&](const Statement& row) {
    if (row.text(0) == "mode") state.mode = parse_mode(row.text(1));
    if (row.text(0) == "resume_mode") state.resume_mode = parse_mode(row.text(1));
    if (row.text(0) != "overrides") return;
    v1::OverrideList list;
    if (!from_json(row.text(1), list)) broken = "the list of overrides";
    state.overrides.assign(list.overrides().begin(), list.overrides().end());
  });
  if (!settings_read) return failure("read");
  Statement steering(database_, "SELECT node, entries FROM steering");
  const bool steering_read = steering.each([&](const Statement& row) {
    if (!from_json(row.text(1), state.steering[row.text(0)])) broken = "steering of " + row.text(0);
  });
  if (!steering_read) return failure("read");
  Statement moves(database_,
                  "SELECT view FROM (SELECT number, view FROM moves ORDER BY number DESC LIMIT ?) ORDER BY number");
  const bool moves_read = moves.bind(moves_limit).each([&](const Statement& row) {
    v1::MoveView view;
    if (!from_json(row.text(0), view)) broken = "a move";
    state.moves.push_back(std::move(view));
  });
  if (!moves_read) return failure("read");
  if (!broken.empty()) return Error{"read " + path_ + ": " + broken + " is not as it was written; move the file away"};
  return state;
}

Result<void> Store::save(const PersistentChange& change) {
  auto begun = execute("BEGIN IMMEDIATE");
  if (!begun) return begun;
  auto written = save_in_transaction(change);
  if (written) written = execute("COMMIT");
  if (!written) (void)execute("ROLLBACK");
  return written;
}

Result<void> Store::save_in_transaction(const PersistentChange& change) {
  for (const auto& [name, mode] : {std::pair{"mode", change.mode}, std::pair{"resume_mode", change.resume_mode}}) {
    if (!mode) continue;
    Statement setting(database_, "INSERT OR REPLACE INTO settings VALUES(?, ?)");
    if (!setting.bind(std::string(name)).bind(std::string(to_string(*mode))).run()) return failure("write");
  }
  if (change.overrides) {
    v1::OverrideList list;
    for (const v1::OverrideView& one : *change.overrides) *list.add_overrides() = one;
    Statement overrides(database_, "INSERT OR REPLACE INTO settings VALUES(?, ?)");
    if (!overrides.bind(std::string("overrides")).bind(to_json(list)).run()) return failure("write");
  }
  for (const auto& [node, set] : change.steering) {
    Statement steering(database_, "INSERT OR REPLACE INTO steering VALUES(?, ?)");
    if (!steering.bind(node).bind(to_json(set)).run()) return failure("write");
  }
  if (change.moves.empty()) return {};
  Statement move(database_, "INSERT OR REPLACE INTO moves VALUES(?, ?, ?, ?, ?)");
  for (const auto& [number, view] : change.moves) {
    move.bind(std::int64_t{number}).bind(view.wall_s()).bind(view.flow_id()).bind(view.state()).bind(to_json(view));
    if (!move.run()) return failure("write");
  }
  Statement trim(database_, "DELETE FROM moves WHERE number <= (SELECT max(number) FROM moves) - ?");
  if (!trim.bind(ledger_limit_).run()) return failure("write");
  return {};
}

}  // namespace te
