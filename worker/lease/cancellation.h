#ifndef PLUMBLINE_WORKER_LEASE_CANCELLATION_H_
#define PLUMBLINE_WORKER_LEASE_CANCELLATION_H_

#include <functional>
#include <list>

#include "absl/base/thread_annotations.h"
#include "absl/synchronization/mutex.h"
#include "absl/time/time.h"
#include "common/clock.h"

namespace plumbline::worker {

// Says that some work shall stop; once raised it stays so. Any thread may call.
class Cancellation {
 public:
  Cancellation() = default;
  Cancellation(const Cancellation&) = delete;
  Cancellation& operator=(const Cancellation&) = delete;

  void Raise();
  bool raised() const;

  // Sleeps until it is raised or the clock reaches `deadline`; returns raised().
  bool AwaitUntil(Clock* clock, absl::Time deadline) const;

  // Has `function` called when `cancellation` is raised, at once if it is already; it must neither
  // block nor touch that cancellation. A null `cancellation` is one that is never raised. After
  // the destructor no call runs or begins.
  class Callback {
   public:
    Callback(Cancellation* cancellation, std::function<void()> function);
    ~Callback();
    Callback(const Callback&) = delete;
    Callback& operator=(const Callback&) = delete;

   private:
    Cancellation* const cancellation_;
    std::list<std::function<void()>>::iterator position_;
  };

 private:
  mutable absl::Mutex mutex_;
  bool raised_ ABSL_GUARDED_BY(mutex_) = false;
  std::list<std::function<void()>> callbacks_ ABSL_GUARDED_BY(mutex_);
};

}  // namespace plumbline::worker

#endif  // PLUMBLINE_WORKER_LEASE_CANCELLATION_H_
