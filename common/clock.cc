#include "common/clock.h"

#include <algorithm>
#include <chrono>

#include "absl/time/clock.h"

namespace plumbline {
namespace {

class WallClock final : public Clock {
 public:
  absl::Time Now() override { return absl::Now(); }

  bool AwaitUntil(absl::Mutex* mutex, const absl::Condition& condition,
                  absl::Time deadline) override ABSL_SHARED_LOCKS_REQUIRED(mutex) {
    return mutex->AwaitWithDeadline(condition, deadline);
  }
};

class UnjumpingClock final : public Clock {
 public:
  absl::Time Now() override {
    return start_ + absl::FromChrono(std::chrono::steady_clock::now() - steady_start_);
  }

  bool AwaitUntil(absl::Mutex* mutex, const absl::Condition& condition,
                  absl::Time deadline) override ABSL_SHARED_LOCKS_REQUIRED(mutex) {
    // A mutex waits by the wall clock: not for long at a time, and then this one is asked.
    constexpr absl::Duration kLongestWait = absl::Seconds(1);
    while (true) {
      const absl::Duration left = deadline - Now();
      const absl::Duration wait = std::clamp(left, absl::ZeroDuration(), kLongestWait);
      if (mutex->AwaitWithTimeout(condition, wait)) return true;
      if (left <= kLongestWait && Now() >= deadline) return false;
    }
  }

 private:
  const absl::Time start_ = absl::Now();
  const std::chrono::steady_clock::time_point steady_start_ = std::chrono::steady_clock::now();
};

}  // namespace

Clock* SystemClock() {
  static Clock* const clock = new WallClock;
  return clock;
}

Clock* SteadyClock() {
  static Clock* const clock = new UnjumpingClock;
  return clock;
}

}  // namespace plumbline
