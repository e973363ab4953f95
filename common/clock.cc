#include "common/clock.h"

#include <algorithm>
#include <chrono>

#include "absl/time/clock.h"
#include "common/alarm.h"

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
    if (deadline == absl::InfiniteFuture()) {
      mutex->Await(condition);
      return true;
    }
    const auto over = [&] { return condition.Eval() || Now() >= deadline; };
    if (!over()) {
      // Further ahead than any clock counts is as good as for ever.
      constexpr absl::Duration kLongest = absl::Hours(24 * 365 * 100);
      const absl::Duration since_start = std::min(deadline - start_, kLongest);
      const Alarm alarm(mutex, steady_start_ + absl::ToChronoNanoseconds(
                                                   absl::Ceil(since_start, absl::Nanoseconds(1))));
      mutex->Await(absl::Condition(&over));
    }
    return condition.Eval();
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
