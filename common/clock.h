#ifndef PLUMBLINE_COMMON_CLOCK_H_
#define PLUMBLINE_COMMON_CLOCK_H_

#include "absl/base/thread_annotations.h"
#include "absl/synchronization/mutex.h"
#include "absl/time/time.h"

namespace plumbline {

// Where a program takes its time from, so that a test decides what time it is. Any thread may call
// any method.
class Clock {
 public:
  virtual ~Clock() = default;

  virtual absl::Time Now() = 0;

  // Releases `mutex`, which the caller holds, until `condition` (evaluated under it) is true or
  // this clock reaches `deadline`; holds it again on return. Returns what `condition` then is.
  virtual bool AwaitUntil(absl::Mutex* mutex, const absl::Condition& condition, absl::Time deadline)
      ABSL_SHARED_LOCKS_REQUIRED(mutex) = 0;
};

// The machine's wall clock. Never destroyed.
Clock* SystemClock();

// The wall clock's time when the process first asked, and the machine's steady time since: when the
// wall clock is set, nothing that waits or expires by this one notices, and what it stamps is off
// by so much until the process starts again. For leases above all. Never destroyed.
Clock* SteadyClock();

}  // namespace plumbline

#endif  // PLUMBLINE_COMMON_CLOCK_H_
