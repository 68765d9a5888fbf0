// SPDX-License-Identifier: Apache-2.0
#include "host-agent/core/backoff.h"

#include <gtest/gtest.h>

namespace te::agent {
namespace {

TEST(Backoff, DoublesUpToItsCeiling) {
  Backoff backoff(100, 350);
  EXPECT_EQ(backoff.failed(0), 100);
  EXPECT_EQ(backoff.failed(0), 200);
  EXPECT_EQ(backoff.failed(0), 350);
  EXPECT_EQ(backoff.failed(0), 350);
}

TEST(Backoff, SuccessStartsItAnew) {
  Backoff backoff(100, 1000);
  EXPECT_EQ(backoff.failed(0), 100);
  EXPECT_EQ(backoff.failed(0), 200);
  backoff.succeeded(0);
  EXPECT_EQ(backoff.failed(0), 100);
}

TEST(Backoff, SuccessMustLastToCount) {
  Backoff backoff(100, 1000, 5000);
  EXPECT_EQ(backoff.failed(0), 100);
  backoff.succeeded(4999);
  EXPECT_EQ(backoff.failed(0), 200);
  backoff.succeeded(5000);
  EXPECT_EQ(backoff.failed(0), 100);
}

TEST(Backoff, JitterTakesAwayAtMostHalf) {
  EXPECT_EQ(Backoff(100, 1000).failed(0.5), 75);
  EXPECT_EQ(Backoff(100, 1000).failed(1), 50);
}

}  // namespace
}  // namespace te::agent
