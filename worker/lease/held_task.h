#ifndef PLUMBLINE_WORKER_LEASE_HELD_TASK_H_
#define PLUMBLINE_WORKER_LEASE_HELD_TASK_H_

#include <cstdint>
#include <optional>
#include <string>

#include "absl/base/thread_annotations.h"
#include "absl/synchronization/mutex.h"
#include "proto/plumbline/v1/job.pb.h"
#include "proto/plumbline/v1/worker_service.pb.h"
#include "worker/lease/cancellation.h"

namespace plumbline::worker {

// Why an attempt stops before its end. A later one takes the place of an earlier one.
enum class StopReason {
  kNone,
  kRelease,    // The worker is to end: hand the task back.
  kCancelled,  // The job's owner said so: complete with CANCELLED.
  kLeaseLost,  // Somebody else has the task, or this worker must go: write nothing.
};

// A task under a lease of this worker. Any thread may call.
class HeldTask {
 public:
  explicit HeldTask(v1::Assignment assignment) : assignment_(std::move(assignment)) {}

  const v1::Assignment& assignment() const { return assignment_; }
  const std::string& name() const { return assignment_.lease().task(); }
  int64_t fencing_token() const { return assignment_.lease().fencing_token(); }

  void Stop(StopReason reason);
  StopReason stop_reason() const;

  // Raised by any stop: compute no further.
  Cancellation* work() { return &work_; }
  // Raised when nothing may be written any more.
  Cancellation* writes() { return &writes_; }

  // The worker is to end: work that is kept piece by piece goes no further than the piece that
  // runs.
  void AskToYield();
  bool asked_to_yield() const;

  // What the next heartbeat tells.
  void SetProgress(const v1::Progress& progress);
  std::optional<v1::Progress> progress() const;
  void SetRun(const std::string& run);  // "runs/{run}"
  std::string run() const;

 private:
  const v1::Assignment assignment_;
  Cancellation work_;
  Cancellation writes_;

  mutable absl::Mutex mutex_;
  StopReason stop_reason_ ABSL_GUARDED_BY(mutex_) = StopReason::kNone;
  bool asked_to_yield_ ABSL_GUARDED_BY(mutex_) = false;
  std::optional<v1::Progress> progress_ ABSL_GUARDED_BY(mutex_);
  std::string run_ ABSL_GUARDED_BY(mutex_);
};

}  // namespace plumbline::worker

#endif  // PLUMBLINE_WORKER_LEASE_HELD_TASK_H_
