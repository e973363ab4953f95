#include "common/clock_fake.h"

namespace plumbline {

absl::Time FakeClock::Now() {
  absl::MutexLock lock(&mutex_);
  return now_;
}

bool FakeClock::AwaitUntil(absl::Mutex* mutex, const absl::Condition& condition,
                           absl::Time deadline) {
  {
    absl::MutexLock lock(&mutex_);
    ++waiters_;
  }
  // Advance() cannot signal `mutex`: by then its owner may be gone. So the fake time is looked at
  // again every real millisecond, which costs a test little and decides nothing.
  bool satisfied = false;
  do {
    satisfied = mutex->AwaitWithTimeout(condition, absl::Milliseconds(1));
  } while (!satisfied && Now() < deadline);
  absl::MutexLock lock(&mutex_);
  --waiters_;
  return satisfied;
}

void FakeClock::Advance(absl::Duration duration) {
  absl::MutexLock lock(&mutex_);
  now_ += duration;
}

bool FakeClock::WaitForWaiters(int count) {
  const auto enough = [this, count]()
                          ABSL_SHARED_LOCKS_REQUIRED(mutex_) { return waiters_ >= count; };
  absl::MutexLock lock(&mutex_);
  return mutex_.AwaitWithTimeout(absl::Condition(&enough), absl::Minutes(1));
}

}  // namespace plumbline
