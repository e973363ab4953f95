#include "common/clock.h"

#include <gtest/gtest.h>

#include <thread>

#include "absl/time/clock.h"
#include "common/clock_fake.h"

namespace plumbline {
namespace {

TEST(SystemClockTest, IsTheWallClock) {
  const absl::Time before = absl::Now();
  const absl::Time now = SystemClock()->Now();
  EXPECT_LE(before, now);
  EXPECT_LE(now, absl::Now());
}

TEST(SystemClockTest, AwaitReturnsFalseAtTheDeadlineAndTrueAtOnce) {
  absl::Mutex mutex;
  bool ready = false;
  absl::MutexLock lock(&mutex);
  const absl::Time deadline = SystemClock()->Now() + absl::Milliseconds(5);
  EXPECT_FALSE(SystemClock()->AwaitUntil(&mutex, absl::Condition(&ready), deadline));
  EXPECT_GE(SystemClock()->Now(), deadline);
  ready = true;
  EXPECT_TRUE(SystemClock()->AwaitUntil(&mutex, absl::Condition(&ready), absl::InfinitePast()));
}

TEST(FakeClockTest, StandsStillUntilAdvanced) {
  FakeClock clock(absl::FromUnixSeconds(100));
  EXPECT_EQ(clock.Now(), absl::FromUnixSeconds(100));
  clock.Advance(absl::Seconds(30));
  EXPECT_EQ(clock.Now(), absl::FromUnixSeconds(130));
}

TEST(FakeClockTest, AdvancingWakesAWaiterAtItsDeadlineAndNotBefore) {
  FakeClock clock(absl::FromUnixSeconds(0));
  absl::Mutex mutex;
  bool never = false;
  absl::Time woken = absl::InfinitePast();
  std::thread waiter([&] {
    absl::MutexLock lock(&mutex);
    EXPECT_FALSE(clock.AwaitUntil(&mutex, absl::Condition(&never), absl::FromUnixSeconds(10)));
    woken = clock.Now();
  });
  ASSERT_TRUE(clock.WaitForWaiters(1));
  clock.Advance(absl::Seconds(9));
  clock.Advance(absl::Seconds(1));
  waiter.join();
  EXPECT_EQ(woken, absl::FromUnixSeconds(10));
}

TEST(FakeClockTest, AConditionEndsTheWaitWhileTheClockStands) {
  FakeClock clock;
  absl::Mutex mutex;
  bool ready = false;
  std::thread waiter([&] {
    absl::MutexLock lock(&mutex);
    EXPECT_TRUE(clock.AwaitUntil(&mutex, absl::Condition(&ready), absl::InfiniteFuture()));
  });
  ASSERT_TRUE(clock.WaitForWaiters(1));
  {
    absl::MutexLock lock(&mutex);
    ready = true;
  }
  waiter.join();
}

TEST(SteadyClockTest, RunsFromTheWallClocksTimeAndWakes) {
  Clock* const clock = SteadyClock();
  EXPECT_LT(absl::AbsDuration(clock->Now() - SystemClock()->Now()), absl::Minutes(1));
  absl::Mutex mutex;
  bool never = false;
  absl::MutexLock lock(&mutex);
  const absl::Time start = clock->Now();
  // However long others look at the mutex meanwhile.
  EXPECT_FALSE(
      clock->AwaitUntil(&mutex, absl::Condition(&never), start + absl::Milliseconds(1100)));
  EXPECT_GE(clock->Now() - start, absl::Milliseconds(1100));
  bool already = true;
  EXPECT_TRUE(clock->AwaitUntil(&mutex, absl::Condition(&already), absl::InfiniteFuture()));
  EXPECT_FALSE(clock->AwaitUntil(&mutex, absl::Condition(&never), absl::InfinitePast()));
}

}  // namespace
}  // namespace plumbline
