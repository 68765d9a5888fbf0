// SPDX-License-Identifier: Apache-2.0
#include "te-controller/app/store.h"

#include <gtest/gtest.h>
#include <sqlite3.h>
#include <stdlib.h>

#include <boost/asio/executor_work_guard.hpp>
#include <boost/asio/io_context.hpp>
#include <chrono>
#include <filesystem>
#include <memory>
#include <string>

#include "te-controller/app/store_writer.h"
#include "te-controller/engine/flow.h"

namespace te {
namespace {

class StoreTest : public ::testing::Test {
 protected:
  StoreTest() {
    std::string pattern = ::testing::TempDir() + "te-store-XXXXXX";
    folder_ = ::mkdtemp(pattern.data());
  }
  ~StoreTest() override { std::filesystem::remove_all(folder_); }
  [[nodiscard]] std::string path() const { return folder_ + "/state.db"; }
  std::unique_ptr<Store> open(std::int64_t limit = 100000) {
    auto store = Store::open(path(), limit);
    EXPECT_TRUE(store) << store.error().message;
    return *std::move(store);
  }

 private:
  std::string folder_;
};

v1::MoveView move(int number, const std::string& state) {
  v1::MoveView view;
  view.set_number(number);
  view.set_flow_id("0a1b2c3d");
  view.set_state(state);
  view.set_reason("because \"of\" é");
  view.set_predicted_gain_bps(1.5e9);
  return view;
}

v1::SteeringSet set_of(std::uint16_t port) {
  v1::SteeringSet set;
  set.set_revision(0xFFFFFFFFFFFFULL);
  v1::SteeringEntry& entry = *set.add_entries();
  *entry.mutable_key() = make_flow_key(
      {.source = *IpAddress::parse("10.0.0.1"), .destination = *IpAddress::parse("10.0.0.2"), .destination_qpn = 5}, 3);
  entry.set_port(port);
  return set;
}

TEST_F(StoreTest, IsEmptyAtFirst) {
  const auto state = open()->load(10);
  ASSERT_TRUE(state);
  EXPECT_FALSE(state->mode);
  EXPECT_TRUE(state->steering.empty());
  EXPECT_TRUE(state->moves.empty());
}

TEST_F(StoreTest, IsForOneControllerAtATime) {
  auto first = open();
  const auto second = Store::open(path());
  ASSERT_FALSE(second);
  EXPECT_NE(second.error().message.find(path() + ".lock: another te-controller uses this state"), std::string::npos);
  first.reset();
  EXPECT_TRUE(Store::open(path()));
}

TEST_F(StoreTest, GivesBackAfterReopeningWhatWasSaved) {
  PersistentChange change;
  change.mode = Mode::kPaused;
  change.resume_mode = Mode::kAct;
  change.steering["h1"] = set_of(0xC001);
  change.moves[1] = move(1, "sent");
  change.moves[2] = move(2, "sent");
  ASSERT_TRUE(open()->save(change));
  change = {};
  change.moves[1] = move(1, "verified");
  ASSERT_TRUE(open()->save(change));
  const auto state = open()->load(10);
  ASSERT_TRUE(state);
  EXPECT_EQ(state->mode, Mode::kPaused);
  EXPECT_EQ(state->resume_mode, Mode::kAct);
  ASSERT_EQ(state->steering.count("h1"), 1U);
  EXPECT_EQ(state->steering.at("h1").SerializeAsString(), set_of(0xC001).SerializeAsString());
  ASSERT_EQ(state->moves.size(), 2U);
  EXPECT_EQ(state->moves[0].SerializeAsString(), move(1, "verified").SerializeAsString());
  EXPECT_EQ(state->moves[1].number(), 2);
}

TEST_F(StoreTest, GivesBackTheOverridesAsTheyWereLast) {
  v1::OverrideView one;
  one.set_kind("drain");
  one.set_target("leaf1:spine2");
  one.set_who("alice");
  one.set_until_s(1.8e9);
  PersistentChange change;
  change.overrides = std::vector{one, one};
  const auto store = open();
  ASSERT_TRUE(store->save(change));
  change.overrides = std::vector{one};
  ASSERT_TRUE(store->save(change));
  ASSERT_TRUE(store->save(
      PersistentChange{.mode = Mode::kAct, .resume_mode = {}, .steering = {}, .moves = {}, .overrides = {}}));
  const auto state = store->load(10);
  ASSERT_TRUE(state);
  ASSERT_EQ(state->overrides.size(), 1U);
  EXPECT_EQ(state->overrides[0].SerializeAsString(), one.SerializeAsString());
}

TEST_F(StoreTest, KeepsTheNewestMovesOnly) {
  const auto store = open(3);
  PersistentChange change;
  for (int number = 1; number <= 10; ++number) change.moves[number] = move(number, "sent");
  ASSERT_TRUE(store->save(change));
  const auto all = store->load(100);
  ASSERT_EQ(all->moves.size(), 3U);
  EXPECT_EQ(all->moves.front().number(), 8);
  const auto newest = store->load(1);
  ASSERT_EQ(newest->moves.size(), 1U);
  EXPECT_EQ(newest->moves.front().number(), 10);
}

TEST_F(StoreTest, RefusesWhatIsNoDatabaseOrOfANewerVersion) {
  EXPECT_FALSE(Store::open("/nonexistent-folder/state.db"));
  open();
  sqlite3* raw = nullptr;
  ASSERT_EQ(sqlite3_open(path().c_str(), &raw), SQLITE_OK);
  sqlite3_exec(raw, "PRAGMA user_version=99", nullptr, nullptr, nullptr);
  sqlite3_close(raw);
  const auto newer = Store::open(path());
  ASSERT_FALSE(newer);
  EXPECT_NE(newer.error().message.find("newer te-controller"), std::string::npos);
}

class StoreWriterTest : public StoreTest {
 protected:
  /// Runs the event loop until then.
  template <class Condition>
  bool wait_for(const Condition& condition) {
    const auto deadline = std::chrono::steady_clock::now() + std::chrono::seconds(20);
    while (!condition() && std::chrono::steady_clock::now() < deadline) io.run_one_for(std::chrono::milliseconds(50));
    return condition();
  }
  boost::asio::io_context io;
  boost::asio::executor_work_guard<boost::asio::io_context::executor_type> guard = boost::asio::make_work_guard(io);
  std::unique_ptr<StoreWriter> writer = std::make_unique<StoreWriter>(io, open());
};

TEST_F(StoreWriterTest, SaysWhenTheDiskFailsAndStoresAllOnceItWorksAgain) {
  sqlite3* blocker = nullptr;
  ASSERT_EQ(sqlite3_open(path().c_str(), &blocker), SQLITE_OK);
  ASSERT_EQ(sqlite3_exec(blocker, "ALTER TABLE moves RENAME TO away", nullptr, nullptr, nullptr), SQLITE_OK);
  PersistentChange change;
  change.moves[1] = move(1, "sent");
  writer->write(change);
  ASSERT_TRUE(wait_for([&] { return !writer->problem().empty(); }));
  ASSERT_EQ(sqlite3_exec(blocker, "ALTER TABLE away RENAME TO moves", nullptr, nullptr, nullptr), SQLITE_OK);
  sqlite3_close(blocker);
  change.moves.clear();
  change.moves[2] = move(2, "sent");
  writer->write(change);
  ASSERT_TRUE(wait_for([&] { return writer->problem().empty(); }));
  writer->finish();
  EXPECT_EQ(writer->moves_lost(), 0U);
  writer.reset();
  EXPECT_EQ(open()->load(10)->moves.size(), 2U);
}

TEST_F(StoreWriterTest, TriesAgainThoughThereIsNothingNewToWrite) {
  sqlite3* blocker = nullptr;
  ASSERT_EQ(sqlite3_open(path().c_str(), &blocker), SQLITE_OK);
  ASSERT_EQ(sqlite3_exec(blocker, "ALTER TABLE moves RENAME TO away", nullptr, nullptr, nullptr), SQLITE_OK);
  PersistentChange change;
  change.moves[1] = move(1, "sent");
  writer->write(change);
  ASSERT_TRUE(wait_for([&] { return !writer->problem().empty(); }));
  ASSERT_EQ(sqlite3_exec(blocker, "ALTER TABLE away RENAME TO moves", nullptr, nullptr, nullptr), SQLITE_OK);
  sqlite3_close(blocker);
  ASSERT_TRUE(wait_for([&] { return writer->problem().empty(); }));
  writer.reset();
  EXPECT_EQ(open()->load(10)->moves.size(), 1U);
}

}  // namespace
}  // namespace te
