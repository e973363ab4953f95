#ifndef PLUMBLINE_SERVER_SCHEDULER_SCHEDULER_H_
#define PLUMBLINE_SERVER_SCHEDULER_SCHEDULER_H_

#include <cstdint>
#include <map>
#include <optional>
#include <set>
#include <string>
#include <tuple>
#include <utility>
#include <vector>

#include "absl/container/flat_hash_map.h"
#include "absl/container/flat_hash_set.h"
#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "absl/time/time.h"
#include "common/clock.h"
#include "proto/plumbline/v1/job.pb.h"
#include "proto/plumbline/v1/worker_service.pb.h"
#include "server/scheduler/fair_share.h"
#include "server/store/keys.h"
#include "server/store/record.pb.h"
#include "server/store/write_set.h"

namespace plumbline::server {

// Reason of FAILED_PRECONDITION where a call names a worker or an incarnation that is not
// registered: the worker registers again and goes on.
inline constexpr char kWorkerUnknownReason[] = "WORKER_UNKNOWN";

struct SchedulerOptions {
  absl::Duration lease_duration = absl::Seconds(15);
  absl::Duration heartbeat_interval = absl::Seconds(3);
  // A task whose worker was lost or failed this often without getting on is a poison task.
  int max_infrastructure_failures = 5;
  // The same of a task with plug-ins, which may be what its workers are lost for.
  int max_plugin_failures = 3;
  // A task whose plug-in no worker has fails after so long.
  absl::Duration plugin_patience = absl::Minutes(10);
  // The first retry comes at once, the second after this, each further one after twice as long.
  absl::Duration first_backoff = absl::Seconds(1);
  absl::Duration longest_backoff = absl::Minutes(1);
  // The workers are shared evenly among the values of this label of jobs; jobs without it are a
  // group of their own. Priorities come first.
  std::string fair_share_label = "team";
  // By value of that label ("*": of every other one): how many tasks may run at once.
  std::map<std::string, int> quotas;
  // No job is taken that would make more tasks live.
  int64_t max_live_tasks = 100'000;
  // A worker that is lost or gone for so long is forgotten.
  absl::Duration forget_workers_after = absl::Hours(7 * 24);
};

inline bool IsFinal(v1::JobState state) {
  return state == v1::JOB_STATE_SUCCEEDED || state == v1::JOB_STATE_FAILED ||
         state == v1::JOB_STATE_CANCELLED;
}

// How often things happened since the start, for metrics.
struct SchedulerCounts {
  int64_t attempts_started = 0;
  int64_t leases_lost = 0;     // expired, or their worker restarted
  int64_t tasks_released = 0;  // handed back
  int64_t tasks_poisoned = 0;
  std::map<v1::AttemptEnd, int64_t> attempts_ended;
};

// What waits and what runs now.
struct SchedulerLoad {
  int64_t ready = 0;        // Wait for a worker.
  int64_t backing_off = 0;  // Wait before they are tried again.
  int64_t blocked = 0;      // Wait for other jobs.
  int64_t running = 0;
  // When the oldest of `ready` began to wait.
  absl::Time oldest_queued = absl::InfiniteFuture();
  std::map<v1::WorkerState, int64_t> workers;
};

// Decides which worker does which task: the jobs that have not finished, their tasks, the workers
// and the leases between them, in memory. It does no I/O and knows time from its clock alone. Every
// call changes memory at once and notes what must become durable; TakeChanges hands that out, and
// whoever drives it answers callers once it is. One thread at a time.
class Scheduler {
 public:
  Scheduler(Clock* clock, SchedulerOptions options);

  // --- Start: what the store holds, before anything else.
  void RestoreFencingToken(int64_t newest) { newest_token_ = newest; }
  void RestoreWorker(store::WorkerRecord record);
  void RestoreJob(int64_t number, store::JobRecord job, std::vector<store::TaskRecord> tasks);
  // The holder gets a whole lease duration to be heard of. Sequence numbers of the attempt's first
  // and last events, 0 and 0 for none.
  void RestoreLease(TaskKey key, const store::LeaseRecord& lease, int64_t first_sequence,
                    int64_t last_sequence);
  // What groups of the fair share have used; after all jobs and leases.
  void RestoreShares(const std::map<std::string, absl::Duration>& used) {
    fair_share_.Restore(used);
  }
  // Nobody holds what was held: the attempts end, and their tasks are queued again.
  void LoseAllLeases(absl::string_view message);
  // All jobs are there.
  void EndRestore();

  // --- Jobs.
  void AddJob(int64_t number, store::JobRecord job, std::vector<store::TaskRecord> tasks);
  bool IsLive(int64_t number) const { return jobs_.contains(number); }
  // Tasks of all live jobs.
  int64_t live_tasks() const { return live_tasks_; }
  // Cancels what is queued; what runs is told at its worker's next heartbeat. NOT_FOUND if the job
  // is not live.
  absl::Status Cancel(int64_t number, absl::string_view reason);
  // Names of the live jobs that need a run: theirs, one they are compared with, or one of the same
  // seed as a task whose run is not known yet.
  std::vector<std::string> JobsNeeding(const v1::Run& run) const;
  // Fills in what is in memory alone: progress and waiting reasons, of the tasks too if there are
  // any. Leaves a job that is not live as it is.
  void AddPresentState(int64_t number, v1::Job* job) const;

  // --- Workers.
  v1::RegisterWorkerResponse Register(const v1::RegisterWorkerRequest& request);
  // The worker made a call. FAILED_PRECONDITION with kWorkerUnknownReason.
  absl::Status HearFrom(absl::string_view worker, absl::string_view incarnation);
  // The best task that fits, if any. FAILED_PRECONDITION with kWorkerUnknownReason.
  absl::StatusOr<v1::AcquireTaskResponse> Acquire(absl::string_view worker,
                                                  absl::string_view incarnation);
  absl::StatusOr<v1::HeartbeatResponse> Heartbeat(const v1::HeartbeatRequest& request);
  absl::StatusOr<v1::Worker> Drain(absl::string_view worker);
  absl::StatusOr<v1::Worker> GetWorker(absl::string_view worker) const;
  std::vector<v1::Worker> Workers() const;  // By name.
  // Whether this process is registered and may be given tasks.
  bool TakesTasks(absl::string_view worker, absl::string_view incarnation) const;
  // Whether any task waits that some worker could be given now.
  bool HasReadyTasks() const { return ready_count_ > 0; }

  // --- Attempts. All are ABORTED with kLeaseLostReason unless `token` is the task's lease.
  // Of events numbered `first` to `last`, how many are new (those at the end). INVALID_ARGUMENT for
  // a gap. `progress` is the newest of them, if any.
  absl::StatusOr<int64_t> AcceptEvents(TaskKey key, int64_t token, int64_t first, int64_t last,
                                       const v1::Progress* progress);
  // Where those events came to stand in the job.
  void NoteSequences(TaskKey key, int64_t first, int64_t last);
  absl::StatusOr<int64_t> NewestClientSequence(TaskKey key, int64_t token) const;
  absl::Status Complete(TaskKey key, int64_t token, const v1::TaskReport& report);
  absl::Status Fail(TaskKey key, int64_t token, const v1::TaskFailure& failure);
  absl::Status Release(const v1::ReleaseTaskRequest& request, TaskKey key);
  // The attempt's run, "runs/{run}", now that it is known.
  absl::Status NoteRun(TaskKey key, int64_t token, const std::string& run);
  // Counts a step of the attempt by its origin; one that was counted is not counted again.
  void CountStep(TaskKey key, const v1::StepEvent& step);
  // The attempt has saved something that was not there, a step of its run if `step` is set: the
  // task got on.
  void NoteSavedStep(TaskKey key, int64_t token, std::optional<int32_t> step);
  // For the attempts to come.
  void NoteSensitivity(TaskKey key, const v1::SensitivityCheck& check);
  // The share of the task under lease. Null if `token` holds no lease.
  const v1::JobSpec* FindHeldSpec(TaskKey key, int64_t token) const;
  // The attempt as recorded, for events and reports. Null if `token` holds no lease.
  const v1::Task* FindHeld(TaskKey key, int64_t token) const;

  // --- Time: expires leases, loses workers, ends backoffs.
  void Tick();
  absl::Time NextWake() const;

  // What changed since the last call. Jobs that finished are forgotten.
  WriteSet TakeChanges();
  const SchedulerCounts& counts() const { return counts_; }
  SchedulerLoad Load() const;

 private:
  struct LeaseState {
    store::LeaseRecord record;
    absl::Time begun;
    absl::Time deadline;
    int64_t first_sequence = 0;
    int64_t last_sequence = 0;
    std::set<std::pair<int32_t, v1::StepOrigin>> counted_steps;
    std::set<int32_t> saved_steps;  // Not yet counted.
  };
  struct TaskState {
    store::TaskRecord record;
    v1::Progress progress;
    std::optional<LeaseState> lease;
    absl::Time queued_since;
    absl::Time not_before = absl::InfinitePast();
    std::string placement;  // Key of its class while it is ready.
    // Processes that handed it back as unsuitable, and what the last one said.
    absl::flat_hash_set<std::string> unsuitable;
    std::string unsuitable_message;
  };
  struct JobState {
    store::JobRecord record;
    std::string group;  // Of the fair share.
    std::vector<TaskState> tasks;
  };
  // Larger priority first, then older job, then task order.
  struct QueuePosition {
    int32_t negative_priority;
    TaskKey key;
    friend bool operator<(const QueuePosition& a, const QueuePosition& b) {
      return std::tie(a.negative_priority, a.key) < std::tie(b.negative_priority, b.key);
    }
  };
  // Ready tasks with the same needs: fit and waiting reason are found once for all.
  struct PlacementClass {
    v1::Placement needs;
    std::map<std::string, std::set<QueuePosition>> ready;  // By group; none is empty.
    v1::WaitingReason reason;
    // When it fails for want of a plug-in.
    absl::Time gives_up = absl::InfiniteFuture();
  };
  struct WorkerState {
    store::WorkerRecord record;
    v1::DeviceUsage usage;
    absl::Time last_heard;
    std::set<TaskKey> held;
  };

  // One process of a worker, as a key.
  static std::string ProcessOf(absl::string_view worker, absl::string_view incarnation);

  // Transitions (scheduler.cc).
  TaskState* FindTask(TaskKey key);
  const TaskState* FindTask(TaskKey key) const;
  absl::Status CheckLease(TaskKey key, int64_t token) const;
  // Returns the lease as it was.
  LeaseState EndAttempt(TaskKey key, TaskState* task, v1::AttemptEnd end,
                        absl::string_view message);
  // After an attempt that did not finish the task: queues it again, or ends it if it was cancelled.
  void TryAgain(TaskKey key, TaskState* task, const LeaseState& ended);
  // The same where infrastructure is to blame.
  void TryAgainAfterFailure(TaskKey key, TaskState* task, const LeaseState& ended);
  void FinishTask(TaskKey key, TaskState* task, v1::JobState state, absl::string_view message);
  void FinishJobIfDone(int64_t number);
  void FailPoisoned(TaskKey key, TaskState* task);
  bool IsCancelled(TaskKey key) const;
  JobState& InsertJob(int64_t number, store::JobRecord record,
                      std::vector<store::TaskRecord> tasks);

  // Tasks that wait for other jobs (scheduler_dependencies.cc).
  void Block(TaskKey key, const TaskState& task);
  void Unblock(TaskKey key, const TaskState& task);
  // Something of the job ended: lets go, or fails, those who waited for it, and those who waited
  // for these.
  void Settle(int64_t job);
  void SettleTask(TaskKey key);
  // Whether the dependency is over; what it gives is then in the record. An error: it can never be.
  absl::StatusOr<bool> Resolve(const store::Dependency& dependency,
                               store::TaskRecord* record) const;
  v1::WaitingReason WhyBlocked(const TaskState& task) const;

  // What is ready, for whom, and why the rest is not (scheduler_queue.cc).
  void Enqueue(TaskKey key, TaskState* task);
  void MakeReady(TaskKey key, TaskState* task);
  void RemoveFromQueue(TaskKey key, TaskState* task);
  std::vector<const v1::Worker*> WorkersThatTake() const;
  void RefreshWaitingReasons();
  // Notes since when there is no worker with the plug-ins.
  void SetReason(PlacementClass* placement, v1::WaitingReason reason);
  void FailWithoutPlugins();
  v1::WaitingReason WaitingReasonOf(const TaskState& task) const;
  // What the worker is given next, if anything fits.
  std::optional<TaskKey> FindBest(const WorkerState& worker) const;
  // The value of the fair share's label.
  std::string GroupOf(const TaskState& task) const;

  // Workers (scheduler_workers.cc).
  absl::StatusOr<WorkerState*> FindWorker(absl::string_view worker, absl::string_view incarnation);
  void Hear(WorkerState* worker);
  void SetWorkerState(WorkerState* worker, v1::WorkerState state);
  void MarkDraining(WorkerState* worker);
  void ForgetOldWorkers();
  // Over all attempts.
  static void CountSteps(const v1::Task& task, v1::GenerationReport* report);
  static v1::WorkerState PresentState(const WorkerState& worker);
  void Grant(WorkerState* worker, TaskKey key, v1::Assignment* assignment);
  void ExtendLease(TaskKey key, TaskState* task);
  v1::Lease ToLease(TaskKey key, const TaskState& task) const;
  v1::Worker ToWorker(const WorkerState& worker) const;
  void LoseTasksOf(WorkerState* worker, v1::AttemptEnd end, absl::string_view message);

  // Events and what becomes durable (scheduler_changes.cc).
  v1::JobEvent NewEvent(int64_t job) const;
  void AppendJobState(int64_t job);
  void AppendTaskState(TaskKey key, const TaskState& task, absl::string_view message);
  void AppendAttempt(TaskKey key, const TaskState& task);
  void AppendSuperseded(TaskKey key, const LeaseState& lease);
  void AppendReportReady(int64_t job, absl::string_view task_name, const v1::Verdict& verdict);
  v1::Progress ProgressOf(const JobState& job) const;

  Clock* const clock_;
  const SchedulerOptions options_;
  int64_t newest_token_ = 0;

  absl::flat_hash_map<int64_t, JobState> jobs_;
  std::map<std::string, WorkerState> workers_;  // By name.
  std::map<std::string, PlacementClass> classes_;
  FairShare fair_share_;
  int64_t ready_count_ = 0;
  int64_t live_tasks_ = 0;
  std::map<int64_t, std::set<TaskKey>> blocked_;  // By the job that is waited for.
  std::vector<int64_t> to_settle_;
  bool settling_ = false;
  std::set<std::pair<absl::Time, TaskKey>> backoffs_;
  std::set<std::pair<absl::Time, TaskKey>> lease_deadlines_;
  std::set<std::pair<absl::Time, std::string>> worker_deadlines_;

  WriteSet changes_;
  std::set<int64_t> changed_jobs_;
  std::set<TaskKey> changed_tasks_;
  std::set<std::string> changed_workers_;
  SchedulerCounts counts_;
};

}  // namespace plumbline::server

#endif  // PLUMBLINE_SERVER_SCHEDULER_SCHEDULER_H_
