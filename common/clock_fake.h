#ifndef PLUMBLINE_COMMON_CLOCK_FAKE_H_
#define PLUMBLINE_COMMON_CLOCK_FAKE_H_

#include "absl/base/thread_annotations.h"
#include "absl/synchronization/mutex.h"
#include "absl/time/time.h"
#include "common/clock.h"

namespace plumbline {

// A clock that stands still until a test moves it. A thread in AwaitUntil goes on once the time it
// waits for is reached.
class FakeClock final : public Clock {
 public:
  explicit FakeClock(absl::Time start = absl::FromUnixSeconds(1'700'000'000)) : now_(start) {}

  absl::Time Now() override;
  bool AwaitUntil(absl::Mutex* mutex, const absl::Condition& condition,
                  absl::Time deadline) override ABSL_SHARED_LOCKS_REQUIRED(mutex);

  void Advance(absl::Duration duration);

  // Blocks until at least `count` threads are inside AwaitUntil, so that a test moves the clock
  // only after the threads under test have read it. False if that takes more than a minute of real
  // time.
  bool WaitForWaiters(int count);

 private:
  absl::Mutex mutex_;
  absl::Time now_ ABSL_GUARDED_BY(mutex_);
  int waiters_ ABSL_GUARDED_BY(mutex_) = 0;
};

}  // namespace plumbline

#endif  // PLUMBLINE_COMMON_CLOCK_FAKE_H_
