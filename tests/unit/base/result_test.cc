// SPDX-License-Identifier: Apache-2.0
#include "common/base/result.h"

#include <gtest/gtest.h>

#include <memory>
#include <string>

namespace te {
namespace {

TEST(Result, HoldsAValue) {
  const Result<int> result = 7;
  EXPECT_TRUE(result.ok());
  EXPECT_EQ(*result, 7);
}

TEST(Result, HoldsAnError) {
  const Result<int> result = Error{"no such thing"};
  EXPECT_FALSE(result.ok());
  EXPECT_EQ(result.error().message, "no such thing");
}

TEST(Result, OfTheErrorsOwnTypeOfText) {
  const Result<std::string> result = std::string("fine");
  EXPECT_EQ(result->size(), 4U);
}

TEST(Result, GivesUpItsValue) {
  Result<std::unique_ptr<int>> result = std::make_unique<int>(3);
  const std::unique_ptr<int> taken = *std::move(result);
  EXPECT_EQ(*taken, 3);
}

TEST(Result, OfNothingIsSuccess) { EXPECT_TRUE(Result<void>().ok()); }

TEST(Result, OfNothingHoldsAnError) { EXPECT_EQ(Result<void>(Error{"failed"}).error().message, "failed"); }

TEST(Result, ContextComesBeforeTheMessage) { EXPECT_EQ(with_context(Error{"gone"}, "read x").message, "read x: gone"); }

TEST(ResultDeathTest, ReadingTheValueOfAnErrorBreaksAnInvariant) {
  const Result<int> result = Error{"no such thing"};
  EXPECT_DEATH((void)result.value(), "no such thing");
}

TEST(ResultDeathTest, ReadingTheErrorOfAValueBreaksAnInvariant) {
  const Result<int> result = 7;
  EXPECT_DEATH((void)result.error(), "holds a value");
}

}  // namespace
}  // namespace te
