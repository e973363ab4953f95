#ifndef PLUMBLINE_WORKER_LEASE_SESSION_H_
#define PLUMBLINE_WORKER_LEASE_SESSION_H_

#include <cstdint>
#include <functional>
#include <memory>
#include <string>
#include <thread>

#include "absl/base/thread_annotations.h"
#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/synchronization/mutex.h"
#include "absl/time/time.h"
#include "common/clock.h"
#include "proto/plumbline/v1/worker.pb.h"
#include "proto/plumbline/v1/worker_service.pb.h"
#include "worker/lease/cancellation.h"
#include "worker/lease/coordinator.h"
#include "worker/lease/held_task.h"

namespace plumbline::worker {

struct SessionOptions {
  // Who the worker is and what it can do; sent at every registration.
  v1::RegisterWorkerRequest registration;
  // Asked at every heartbeat, on the session's thread.
  std::function<v1::DeviceUsage()> usage;
  // Told whether the coordinator knows the worker, whenever that changes. Must not block or call
  // the session. May be empty.
  std::function<void(bool registered)> on_registered;
  // How long a task that runs when the worker is to end may go on before it is handed back.
  absl::Duration grace = absl::Seconds(20);
  // How long handing it back may then take before it is left to its lease's end.
  absl::Duration release_time = absl::Seconds(5);
  uint64_t backoff_seed = 0;
};

// A worker's standing with the coordinator: it is registered, again whenever the coordinator asks
// for it, its heartbeats go out on a thread of the session's, and it holds at most one task, whose
// lease they extend. Any thread may call any method unless it says otherwise.
class Session {
 public:
  // Begins to register. `coordinator` and `clock` must outlive the session.
  Session(Coordinator* coordinator, Clock* clock, SessionOptions options);
  // Ends the heartbeats without a word. Nobody may be in Acquire().
  ~Session();
  Session(const Session&) = delete;
  Session& operator=(const Session&) = delete;

  // The next task, which is then held until Finish(). Null once the worker is to end. Waits as long
  // as it takes, also for a coordinator that is away. An error is the coordinator's refusal to
  // register this worker. One thread.
  absl::StatusOr<std::shared_ptr<HeldTask>> Acquire();
  // The task that is held is done with, whatever came of it.
  void Finish();

  // The worker is to end: no task is acquired any more. One that runs is asked to yield and may go
  // on for `grace`, then it is stopped with kRelease. Returns at once; a later call can only
  // shorten the grace.
  void Drain(absl::Duration grace);
  // Why tasks are handed back: an operator drained the worker, or its process is to end.
  v1::ReleaseReason release_reason() const;

  // The last heartbeat: the worker holds nothing and ends. Waits for the coordinator only briefly;
  // one that does not hear it takes the worker for lost later. Ends the session's thread.
  void SignOff();

  // OK while the coordinator knows this worker.
  absl::Status registered() const;
  // "workers/{worker}", empty before the first registration.
  std::string worker_name() const;
  // Blocks until the worker is registered, refused, or is to end; the refusal, if that is it.
  absl::Status AwaitRegistration();

 private:
  void Run();
  // Each makes one call; false if it failed.
  bool Register();
  bool SendHeartbeat();
  void Apply(const v1::HeartbeatResponse& response, HeldTask* held);
  void SetRegistered(bool registered) ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);
  void StartDraining(v1::ReleaseReason reason, absl::Duration grace)
      ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);
  // Stops the held task when its time is over. Returns when to look again.
  absl::Time EnforceGrace();

  Coordinator* const coordinator_;
  Clock* const clock_;
  const SessionOptions options_;

  Cancellation stop_acquiring_;  // Raised when the worker is to end.
  Cancellation stop_calls_;      // Raised by the destructor.

  mutable absl::Mutex mutex_;
  v1::RegisterWorkerResponse registration_ ABSL_GUARDED_BY(mutex_);  // The last answer.
  bool registered_ ABSL_GUARDED_BY(mutex_) = false;
  absl::Status refusal_ ABSL_GUARDED_BY(mutex_);  // Of the first registration.
  absl::Status last_error_ ABSL_GUARDED_BY(mutex_);
  bool draining_ ABSL_GUARDED_BY(mutex_) = false;
  v1::ReleaseReason release_reason_ ABSL_GUARDED_BY(mutex_) = v1::RELEASE_REASON_PREEMPTED;
  absl::Time release_at_ ABSL_GUARDED_BY(mutex_) = absl::InfiniteFuture();
  std::shared_ptr<HeldTask> held_ ABSL_GUARDED_BY(mutex_);
  bool wake_ ABSL_GUARDED_BY(mutex_) = false;  // The thread has something to do now.
  bool stopping_ ABSL_GUARDED_BY(mutex_) = false;

  std::thread thread_;
};

}  // namespace plumbline::worker

#endif  // PLUMBLINE_WORKER_LEASE_SESSION_H_
