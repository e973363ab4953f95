#ifndef PLUMBLINE_SERVER_SCHEDULER_DISPATCHER_H_
#define PLUMBLINE_SERVER_SCHEDULER_DISPATCHER_H_

#include <cstdint>
#include <functional>
#include <list>
#include <map>
#include <optional>
#include <set>
#include <string>
#include <thread>
#include <utility>
#include <vector>

#include "absl/base/thread_annotations.h"
#include "absl/container/flat_hash_map.h"
#include "absl/container/flat_hash_set.h"
#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/synchronization/mutex.h"
#include "absl/time/time.h"
#include "common/clock.h"
#include "common/random_id.h"
#include "proto/plumbline/v1/artifact.pb.h"
#include "proto/plumbline/v1/worker_service.pb.h"
#include "server/caller.h"
#include "server/scheduler/event_hub.h"
#include "server/scheduler/scheduler.h"
#include "server/store/store.h"

namespace plumbline::server {

// What of a job its creator decides.
struct NewJob {
  v1::JobSpec spec;  // Checked and canonical.
  std::string request_id;
  std::string request_sha256;
  // Of a generation: what its gate certified, and the runs to compare with, by seed.
  std::optional<v1::NumericalIdentity> gate_identity;
  std::map<uint64_t, std::string> against_runs;
  // Live jobs that all its tasks wait for, and of a generation its tasks by seed.
  std::vector<store::Dependency> waits_for;
  std::map<uint64_t, store::Dependency> seed_waits_for;
  // Live jobs that the comparison of a generation's seeds waits for.
  std::vector<store::Dependency> quality_waits_for;
};

// Reason of ABORTED where a job that a new one is to wait for has ended meanwhile: what it refers
// to must be looked up again.
inline constexpr char kReferencesChangedReason[] = "REFERENCES_CHANGED";

// Whose step is stored.
struct StepOwner {
  TaskKey task;
  std::string worker;  // "workers/{worker}".
  int32_t attempt = 0;
  v1::JobSpec spec;  // The task's.
};

// The scheduler behind a lock, with the store behind the scheduler: every change is made in memory,
// committed, and only then answered. Also holds the long polls and drives the scheduler's time from
// a thread of its own.
//
// Any thread may call; no call waits for the disk. `done` of every call is called exactly once, on
// another thread or within the call, never with the lock held; it must not block.
class Dispatcher {
 public:
  template <typename T>
  using Done = std::function<void(absl::StatusOr<T>)>;
  using DoneStatus = std::function<void(absl::Status)>;

  struct Options {
    SchedulerOptions scheduler;
    // Called with the duration of every attempt that ended by itself. May be empty.
    std::function<void(absl::Duration)> on_attempt_done;
    // Called with every step that a worker tells of for the first time. May be empty.
    std::function<void(const v1::StepEvent&)> on_step;
  };

  // `clock`, `ids` and `hub` must outlive it.
  Dispatcher(Clock* clock, IdSource* ids, Store* store, EventHub* hub, Options options);
  // Stops. The store must have been destroyed before, since its last answers come here.
  ~Dispatcher();

  // Takes over what the store holds and starts the clock. Once, before anything else.
  absl::Status Start();
  // Ends all long polls without a task; later ones end at once. Changes are still taken.
  void Stop();
  // Stops the clock: no lease expires any more, and no call may come any more.
  void StopClock();

  // The job's number. ALREADY_EXISTS (REQUEST_ID_REUSED) where the request id came with another
  // specification; RESOURCE_EXHAUSTED (TOO_MANY_TASKS) where too much is live; ABORTED
  // (kReferencesChangedReason).
  void CreateJob(const Caller& caller, NewJob job, Done<int64_t> done);
  // The job that CreateJob would make, without a name.
  v1::Job DescribeJob(v1::JobSpec spec) const;
  // FAILED_PRECONDITION (JOB_FINISHED) unless it is live or was cancelled.
  void CancelJob(const Caller& caller, int64_t number, std::string reason, DoneStatus done);
  // FAILED_PRECONDITION (JOB_NOT_FINISHED) while it is live, NOT_FOUND while it is being deleted.
  // The artifacts' files stay.
  void DeleteJob(const Caller& caller, int64_t number, const store::JobRecord& record,
                 std::vector<v1::Artifact> artifacts, DoneStatus done);
  // Drops all events but the last of a job that has finished; nothing if it is live or gone.
  absl::Status TrimEvents(int64_t number);
  void AddPresentState(int64_t number, v1::Job* job) const;

  void RegisterWorker(const Caller& caller, const v1::RegisterWorkerRequest& request,
                      Done<v1::RegisterWorkerResponse> done);
  // Answers with a task, or without one after `wait`. Returns a handle for CancelAcquire.
  int64_t AcquireTask(const v1::AcquireTaskRequest& request, absl::Duration wait,
                      Done<v1::AcquireTaskResponse> done);
  // Ends the poll with CANCELLED if it still waits.
  void CancelAcquire(int64_t handle);
  // Takes back an assignment that could not be delivered.
  void TakeBack(const v1::Lease& lease);
  void Heartbeat(const v1::HeartbeatRequest& request, Done<v1::HeartbeatResponse> done);
  void DrainWorker(const Caller& caller, const std::string& name, std::string reason,
                   Done<v1::Worker> done);
  absl::StatusOr<v1::Worker> GetWorker(absl::string_view name) const;
  std::vector<v1::Worker> Workers() const;

  // Where the writes of an attempt go. Every one is ABORTED (LEASE_LOST) under a token that is not
  // the task's newest.
  absl::StatusOr<TaskKey> CheckLease(const std::string& task, int64_t token) const;
  // CheckLease, and notes that the task's run is `run`, "runs/{run}", unless that is empty; that is
  // durable before any write of the caller's that comes after.
  absl::StatusOr<StepOwner> BeginStep(const std::string& task, int64_t token,
                                      const std::string& run);
  // As Scheduler's.
  void NoteSavedStep(TaskKey key, int64_t token, std::optional<int32_t> step);
  // As Scheduler's.
  std::vector<std::string> JobsNeeding(const v1::Run& run) const;
  // Answers with the newest client sequence number that is durable.
  void ReportEvents(const v1::ReportEventsRequest& request, Done<int64_t> done);
  // Answers with the name of the artifact that this one replaced, or "": its bytes are of no use.
  void AddArtifact(const Caller& caller, TaskKey key, int64_t token, const v1::Artifact& artifact,
                   Done<std::string> done);
  void CompleteTask(const Caller& caller, const v1::CompleteTaskRequest& request, DoneStatus done);
  void ReleaseTask(const Caller& caller, const v1::ReleaseTaskRequest& request, DoneStatus done);

  // An audit event of something done now.
  v1::AuditEvent Audit(const Caller& caller, absl::string_view resource,
                       absl::string_view message = "") const;

  SchedulerCounts Counts() const;
  SchedulerLoad Load() const;

 private:
  struct Poll {
    int64_t handle;
    std::string worker;
    std::string incarnation;
    absl::Time deadline;
    Done<v1::AcquireTaskResponse> done;
  };

  static absl::Status CheckNumbers(const v1::ReportEventsRequest& request);
  // OK if the attempt under `token` is recorded as ended by its worker, else `otherwise`.
  static absl::Status CheckEnded(const Store& store, TaskKey key, int64_t token,
                                 absl::Status otherwise);
  // Number and digest of the job that came with a request id; 0 and "" if none did.
  absl::StatusOr<std::pair<int64_t, std::string>> FindRequest(const std::string& request_id) const
      ABSL_SHARED_LOCKS_REQUIRED(mutex_);
  absl::Status CheckRoom(const NewJob& job, size_t tasks) const ABSL_SHARED_LOCKS_REQUIRED(mutex_);
  void AddJob(const Caller& caller, NewJob job, v1::Job created,
              std::vector<store::TaskRecord> tasks, Done<int64_t> done)
      ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);
  std::vector<store::TaskRecord> PlanTasksOf(const NewJob& job, const v1::Job& created) const;

  absl::Status LoadJob(int64_t number) ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);
  absl::Status LoadLease(TaskKey key, const store::LeaseRecord& lease)
      ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);
  absl::StatusOr<TaskKey> FindTask(const std::string& task, int64_t token) const
      ABSL_SHARED_LOCKS_REQUIRED(mutex_);
  // Commits `set`; tells the watchers, then `done`, when it is durable. Returns what the events'
  // sequence numbers became.
  std::vector<v1::JobEvent> Commit(WriteSet set, DoneStatus done)
      ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);
  // Commits what the scheduler changed, and an audit event.
  void CommitChanges(v1::AuditEvent audit, DoneStatus done) ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);
  // Gives ready tasks to the polls that wait, first come first served, and answers polls of workers
  // that take nothing any more.
  void ServePolls() ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);
  // Answers the poll if there is a task for it or none can come. False if it goes on waiting.
  bool TryServe(const Poll& poll) ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);
  void Answer(std::function<void()> answer) ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);
  absl::Time NextWake() const ABSL_SHARED_LOCKS_REQUIRED(mutex_);
  // Wakes the timer where it would sleep past what is now next.
  void Reschedule() ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);
  void TimerLoop();

  Clock* const clock_;
  IdSource* const ids_;
  Store* const store_;
  EventHub* const hub_;
  const Options options_;

  mutable absl::Mutex mutex_;
  Scheduler scheduler_ ABSL_GUARDED_BY(mutex_);
  int64_t newest_job_ ABSL_GUARDED_BY(mutex_) = 0;
  absl::flat_hash_map<std::string, int64_t> live_jobs_ ABSL_GUARDED_BY(mutex_);  // By id.
  // Request ids whose jobs may not be durable yet -> number and digest.
  absl::flat_hash_map<std::string, std::pair<int64_t, std::string>> new_requests_
      ABSL_GUARDED_BY(mutex_);

  absl::flat_hash_set<int64_t> deleting_ ABSL_GUARDED_BY(mutex_);  // Not durably yet.

  std::list<Poll> polls_ ABSL_GUARDED_BY(mutex_);  // Oldest first.
  absl::flat_hash_map<int64_t, std::list<Poll>::iterator> polls_by_handle_ ABSL_GUARDED_BY(mutex_);
  std::set<std::pair<absl::Time, int64_t>> poll_deadlines_ ABSL_GUARDED_BY(mutex_);
  int64_t newest_handle_ ABSL_GUARDED_BY(mutex_) = 0;

  // Answers that need no commit, or whose commit was refused: given by the timer's thread, so that
  // none is given under the lock.
  std::vector<std::function<void()>> answers_ ABSL_GUARDED_BY(mutex_);
  absl::Time timer_until_ ABSL_GUARDED_BY(mutex_) = absl::InfiniteFuture();
  bool timer_moved_ ABSL_GUARDED_BY(mutex_) = false;
  bool polling_stopped_ ABSL_GUARDED_BY(mutex_) = false;
  bool stopping_ ABSL_GUARDED_BY(mutex_) = false;
  std::thread timer_;
};

}  // namespace plumbline::server

#endif  // PLUMBLINE_SERVER_SCHEDULER_DISPATCHER_H_
