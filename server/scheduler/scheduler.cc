#include "server/scheduler/scheduler.h"

#include <algorithm>
#include <utility>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "common/evidence/combine_verdicts.h"
#include "common/grpc_status.h"
#include "common/status.h"
#include "server/proto_util.h"
#include "server/scheduler/placement.h"

namespace plumbline::server {
Scheduler::Scheduler(Clock* clock, SchedulerOptions options)
    : clock_(clock), options_(std::move(options)), fair_share_(options_.quotas) {}

Scheduler::JobState& Scheduler::InsertJob(int64_t number, store::JobRecord record,
                                          std::vector<store::TaskRecord> tasks) {
  JobState& state = jobs_[number];
  state.record = std::move(record);
  const auto& labels = state.record.job().spec().labels();
  const auto label = labels.find(options_.fair_share_label);
  if (label != labels.end()) state.group = label->second;
  live_tasks_ += static_cast<int64_t>(tasks.size());
  state.tasks.resize(tasks.size());
  for (size_t i = 0; i < tasks.size(); ++i) state.tasks[i].record = std::move(tasks[i]);
  return state;
}

void Scheduler::RestoreJob(int64_t number, store::JobRecord job,
                           std::vector<store::TaskRecord> tasks) {
  JobState& state = InsertJob(number, std::move(job), std::move(tasks));
  for (size_t i = 0; i < state.tasks.size(); ++i) {
    TaskState& task = state.tasks[i];
    if (task.record.task().state() != v1::JOB_STATE_QUEUED) continue;
    // Noted by a wall clock that may have been ahead of the present one.
    const absl::Time now = clock_->Now();
    if (task.record.has_not_before()) {
      task.not_before =
          std::min(FromTimestamp(task.record.not_before()), now + options_.longest_backoff);
    }
    task.queued_since = std::min(FromTimestamp(task.record.task().create_time()), now);
    Enqueue({number, static_cast<int32_t>(i)}, &task);
  }
}

void Scheduler::RestoreLease(TaskKey key, const store::LeaseRecord& lease, int64_t first_sequence,
                             int64_t last_sequence) {
  TaskState* const task = FindTask(key);
  if (task == nullptr) return;
  task->lease.emplace();
  task->lease->record = lease;
  task->lease->first_sequence = first_sequence;
  task->lease->last_sequence = last_sequence;
  task->lease->begun = clock_->Now() - FromDuration(lease.held());
  fair_share_.Begin(jobs_.at(key.job).group, task->lease->begun);
  ExtendLease(key, task);
  const auto worker = workers_.find(lease.worker());
  if (worker != workers_.end()) worker->second.held.insert(key);
}

void Scheduler::AddJob(int64_t number, store::JobRecord job, std::vector<store::TaskRecord> tasks) {
  JobState& state = InsertJob(number, std::move(job), std::move(tasks));
  changes_.CreateJob(number, state.record);
  AppendJobState(number);
  for (size_t i = 0; i < state.tasks.size(); ++i) {
    const TaskKey key{number, static_cast<int32_t>(i)};
    TaskState& task = state.tasks[i];
    task.queued_since = clock_->Now();
    changed_tasks_.insert(key);
    Enqueue(key, &task);
    AppendTaskState(key, task, "");
  }
  // Something of what they wait for may be over already.
  for (size_t i = 0; i < state.tasks.size(); ++i) {
    if (!state.tasks[i].record.waits_for().empty()) SettleTask({number, static_cast<int32_t>(i)});
  }
}

absl::Status Scheduler::Cancel(int64_t number, absl::string_view reason) {
  const auto job = jobs_.find(number);
  if (job == jobs_.end()) return absl::NotFoundError("the job is not live");
  if (job->second.record.job().cancel_requested()) return absl::OkStatus();
  job->second.record.mutable_job()->set_cancel_requested(true);
  job->second.record.set_cancel_reason(std::string(reason));
  changed_jobs_.insert(number);
  for (size_t i = 0; i < job->second.tasks.size(); ++i) {
    TaskState& task = job->second.tasks[i];
    if (task.record.task().state() != v1::JOB_STATE_QUEUED) continue;
    const TaskKey key{number, static_cast<int32_t>(i)};
    RemoveFromQueue(key, &task);
    FinishTask(key, &task, v1::JOB_STATE_CANCELLED, reason);
  }
  FinishJobIfDone(number);
  return absl::OkStatus();
}

Scheduler::TaskState* Scheduler::FindTask(TaskKey key) {
  return const_cast<TaskState*>(std::as_const(*this).FindTask(key));
}

const Scheduler::TaskState* Scheduler::FindTask(TaskKey key) const {
  const auto job = jobs_.find(key.job);
  if (job == jobs_.end() || key.task < 0 ||
      key.task >= static_cast<int64_t>(job->second.tasks.size())) {
    return nullptr;
  }
  return &job->second.tasks[key.task];
}

absl::Status Scheduler::CheckLease(TaskKey key, int64_t token) const {
  const TaskState* const task = FindTask(key);
  if (task != nullptr && task->lease.has_value() && task->lease->record.fencing_token() == token) {
    return absl::OkStatus();
  }
  return WithReason(absl::AbortedError(absl::StrCat("fencing token ", token,
                                                    " holds no lease of this task any more")),
                    kLeaseLostReason);
}

bool Scheduler::IsCancelled(TaskKey key) const {
  return jobs_.at(key.job).record.job().cancel_requested();
}

Scheduler::LeaseState Scheduler::EndAttempt(TaskKey key, TaskState* task, v1::AttemptEnd end,
                                            absl::string_view message) {
  v1::Attempt& attempt = *task->record.mutable_task()->mutable_attempts()->rbegin();
  // Steps that it did not come to tell of.
  attempt.set_steps_computed(attempt.steps_computed() +
                             static_cast<int32_t>(task->lease->saved_steps.size()));
  *attempt.mutable_end_time() = ToTimestamp(clock_->Now());
  attempt.set_end(end);
  attempt.set_message(std::string(message));
  lease_deadlines_.erase({task->lease->deadline, key});
  fair_share_.End(jobs_.at(key.job).group, task->lease->begun, clock_->Now());
  const auto worker = workers_.find(task->lease->record.worker());
  if (worker != workers_.end()) worker->second.held.erase(key);
  changes_.RequireLease(key, task->lease->record.fencing_token());
  changes_.EndLease(key);
  changed_tasks_.insert(key);
  ++counts_.attempts_ended[end];
  AppendAttempt(key, *task);
  task->progress.Clear();
  LeaseState ended = *std::move(task->lease);
  task->lease.reset();
  return ended;
}

void Scheduler::TryAgain(TaskKey key, TaskState* task, const LeaseState& ended) {
  if (IsCancelled(key)) {
    FinishTask(key, task, v1::JOB_STATE_CANCELLED, jobs_.at(key.job).record.cancel_reason());
    FinishJobIfDone(key.job);
    return;
  }
  AppendSuperseded(key, ended);
  task->record.mutable_task()->set_state(v1::JOB_STATE_QUEUED);
  task->queued_since = clock_->Now();
  changed_tasks_.insert(key);
  Enqueue(key, task);
  AppendTaskState(key, *task, "");
}

void Scheduler::TryAgainAfterFailure(TaskKey key, TaskState* task, const LeaseState& ended) {
  const int failures = task->record.infrastructure_failures() + 1;
  task->record.set_infrastructure_failures(failures);
  const v1::Placement& needs = task->record.task().placement();
  const bool has_plugins = !needs.plugins().empty() || needs.takes_uploaded_plugins();
  const int most =
      has_plugins ? options_.max_plugin_failures : options_.max_infrastructure_failures;
  if (failures >= most && !IsCancelled(key)) {
    FailPoisoned(key, task);
    return;
  }
  if (failures > 1) {
    const absl::Duration backoff =
        std::min(options_.first_backoff * (int64_t{1} << std::min(failures - 2, 30)),
                 options_.longest_backoff);
    task->not_before = clock_->Now() + backoff;
    *task->record.mutable_not_before() = ToTimestamp(task->not_before);
  }
  TryAgain(key, task, ended);
}

void Scheduler::FailPoisoned(TaskKey key, TaskState* task) {
  ++counts_.tasks_poisoned;
  std::vector<std::string> attempts;
  for (const v1::Attempt& attempt : task->record.task().attempts()) {
    attempts.push_back(absl::StrCat("attempt ", attempt.number(), " on ", attempt.worker(), ": ",
                                    attempt.message()));
  }
  const v1::Placement& needs = task->record.task().placement();
  const absl::Status error =
      WithReason(absl::UnavailableError(
                     absl::StrCat("given up after ", task->record.infrastructure_failures(),
                                  " attempts that did not get through",
                                  needs.plugins().empty() && !needs.takes_uploaded_plugins()
                                      ? ""
                                      : absl::StrCat(", under ", task->record.spec().composition(),
                                                     ", whose plug-in may be why"),
                                  "; ", absl::StrJoin(attempts, "; "))),
                 "ATTEMPTS_EXHAUSTED");
  *task->record.mutable_task()->mutable_error() = ToRpcStatus(error);
  FinishTask(key, task, v1::JOB_STATE_FAILED, error.message());
  FinishJobIfDone(key.job);
}

void Scheduler::FinishTask(TaskKey key, TaskState* task, v1::JobState state,
                           absl::string_view message) {
  task->record.mutable_task()->set_state(state);
  *task->record.mutable_task()->mutable_end_time() = ToTimestamp(clock_->Now());
  changed_tasks_.insert(key);
  AppendTaskState(key, *task, message);
  Settle(key.job);
}

void Scheduler::FinishJobIfDone(int64_t number) {
  JobState& state = jobs_.at(number);
  v1::Job& job = *state.record.mutable_job();
  if (IsFinal(job.state())) return;
  bool any_cancelled = false;
  const v1::Task* failed = nullptr;
  std::vector<std::pair<std::string, v1::Verdict>> verdicts;
  for (const TaskState& task : state.tasks) {
    const v1::Task& record = task.record.task();
    if (!IsFinal(record.state())) return;
    any_cancelled |= record.state() == v1::JOB_STATE_CANCELLED;
    if (record.state() == v1::JOB_STATE_FAILED && failed == nullptr) failed = &record;
    if (record.has_verdict()) verdicts.emplace_back(record.title(), record.verdict());
  }
  job.set_state(failed != nullptr ? v1::JOB_STATE_FAILED
                : any_cancelled   ? v1::JOB_STATE_CANCELLED
                                  : v1::JOB_STATE_SUCCEEDED);
  if (failed != nullptr) *job.mutable_error() = failed->error();
  *job.mutable_verdict() = CombineVerdicts(verdicts);
  *job.mutable_progress() = ProgressOf(state);
  *job.mutable_end_time() = ToTimestamp(clock_->Now());
  changed_jobs_.insert(number);
  if (!verdicts.empty()) AppendReportReady(number, "", job.verdict());
  AppendJobState(number);
  Settle(number);
}

absl::StatusOr<int64_t> Scheduler::AcceptEvents(TaskKey key, int64_t token, int64_t first,
                                                int64_t last, const v1::Progress* progress) {
  PLUMBLINE_RETURN_IF_ERROR(CheckLease(key, token));
  TaskState* const task = FindTask(key);
  const int64_t known = task->lease->record.client_sequence();
  if (first > known + 1) {
    return FieldError("events[0].client_sequence",
                      absl::StrCat(first, " leaves a gap: the newest known is ", known),
                      absl::StrCat("1 to ", known + 1));
  }
  if (last <= known) return 0;
  task->lease->record.set_client_sequence(last);
  *task->lease->record.mutable_held() = ToDuration(clock_->Now() - task->lease->begun);
  changes_.UpdateLease(key, task->lease->record);
  if (progress != nullptr) task->progress = *progress;
  return last - known;
}

void Scheduler::NoteSequences(TaskKey key, int64_t first, int64_t last) {
  TaskState* const task = FindTask(key);
  if (task == nullptr || !task->lease.has_value()) return;
  if (task->lease->first_sequence == 0) task->lease->first_sequence = first;
  task->lease->last_sequence = last;
}

absl::StatusOr<int64_t> Scheduler::NewestClientSequence(TaskKey key, int64_t token) const {
  PLUMBLINE_RETURN_IF_ERROR(CheckLease(key, token));
  return FindTask(key)->lease->record.client_sequence();
}

const v1::JobSpec* Scheduler::FindHeldSpec(TaskKey key, int64_t token) const {
  return CheckLease(key, token).ok() ? &FindTask(key)->record.spec() : nullptr;
}

const v1::Task* Scheduler::FindHeld(TaskKey key, int64_t token) const {
  return CheckLease(key, token).ok() ? &FindTask(key)->record.task() : nullptr;
}

absl::Status Scheduler::Complete(TaskKey key, int64_t token, const v1::TaskReport& report) {
  PLUMBLINE_RETURN_IF_ERROR(CheckLease(key, token));
  TaskState* const task = FindTask(key);
  v1::Task& record = *task->record.mutable_task();
  EndAttempt(key, task, v1::ATTEMPT_END_COMPLETED, "");
  *record.mutable_verdict() = report.verdict();
  if (record.verdict().outcome() == v1::OUTCOME_UNSPECIFIED) {
    record.mutable_verdict()->set_outcome(v1::OUTCOME_NOT_JUDGED);
  }
  v1::TaskReport stored = report;
  stored.set_task(record.name());
  stored.set_title(record.title());
  *stored.mutable_attempts() = record.attempts();
  if (record.kind() == v1::JOB_KIND_FULL_MODEL) {
    *task->record.mutable_identity() = report.identity();
  }
  if (stored.has_generation()) CountSteps(record, stored.mutable_generation());
  changes_.PutReport(key, stored);
  AppendReportReady(key.job, record.name(), record.verdict());
  FinishTask(key, task, v1::JOB_STATE_SUCCEEDED, "");
  FinishJobIfDone(key.job);
  return absl::OkStatus();
}

absl::Status Scheduler::Fail(TaskKey key, int64_t token, const v1::TaskFailure& failure) {
  PLUMBLINE_RETURN_IF_ERROR(CheckLease(key, token));
  TaskState* const task = FindTask(key);
  const std::string& message = failure.status().message();
  switch (failure.failure_class()) {
    case v1::FAILURE_CLASS_CANCELLED:
      // Where nobody had asked for it, the worker stopped for a reason of its own.
      TryAgainAfterFailure(key, task, EndAttempt(key, task, v1::ATTEMPT_END_CANCELLED, message));
      return absl::OkStatus();
    case v1::FAILURE_CLASS_INFRASTRUCTURE:
      TryAgainAfterFailure(key, task, EndAttempt(key, task, v1::ATTEMPT_END_FAILED, message));
      return absl::OkStatus();
    default:
      EndAttempt(key, task, v1::ATTEMPT_END_FAILED, message);
      *task->record.mutable_task()->mutable_error() = failure.status();
      FinishTask(key, task, v1::JOB_STATE_FAILED, message);
      FinishJobIfDone(key.job);
      return absl::OkStatus();
  }
}

absl::Status Scheduler::Release(const v1::ReleaseTaskRequest& request, TaskKey key) {
  PLUMBLINE_RETURN_IF_ERROR(CheckLease(key, request.fencing_token()));
  TaskState* const task = FindTask(key);
  if (request.reason() == v1::RELEASE_REASON_UNSUITABLE) {
    task->unsuitable.insert(
        ProcessOf(task->lease->record.worker(), task->lease->record.incarnation()));
    task->unsuitable_message = request.message();
    v1::Placement& needs = *task->record.mutable_task()->mutable_placement();
    needs.set_memory_bytes(std::max(needs.memory_bytes(), request.needed_memory_bytes()));
  }
  ++counts_.tasks_released;
  TryAgain(key, task, EndAttempt(key, task, v1::ATTEMPT_END_RELEASED, request.message()));
  return absl::OkStatus();
}

void Scheduler::Tick() {
  const absl::Time now = clock_->Now();
  while (!lease_deadlines_.empty() && lease_deadlines_.begin()->first <= now) {
    const TaskKey key = lease_deadlines_.begin()->second;
    TaskState* const task = FindTask(key);
    ++counts_.leases_lost;
    const LeaseState ended =
        EndAttempt(key, task, v1::ATTEMPT_END_LEASE_EXPIRED,
                   absl::StrCat(task->lease->record.worker(), " was not heard of for ",
                                absl::FormatDuration(options_.lease_duration)));
    TryAgainAfterFailure(key, task, ended);
  }
  while (!worker_deadlines_.empty() && worker_deadlines_.begin()->first <= now) {
    WorkerState& worker = workers_.at(worker_deadlines_.begin()->second);
    worker_deadlines_.erase(worker_deadlines_.begin());
    SetWorkerState(&worker, v1::WORKER_STATE_LOST);
  }
  while (!backoffs_.empty() && backoffs_.begin()->first <= now) {
    const TaskKey key = backoffs_.begin()->second;
    backoffs_.erase(backoffs_.begin());
    MakeReady(key, FindTask(key));
  }
  FailWithoutPlugins();
}

absl::Time Scheduler::NextWake() const {
  absl::Time wake = absl::InfiniteFuture();
  for (const auto& [bytes, placement] : classes_) wake = std::min(wake, placement.gives_up);
  if (!lease_deadlines_.empty()) wake = std::min(wake, lease_deadlines_.begin()->first);
  if (!worker_deadlines_.empty()) wake = std::min(wake, worker_deadlines_.begin()->first);
  if (!backoffs_.empty()) wake = std::min(wake, backoffs_.begin()->first);
  return wake;
}

}  // namespace plumbline::server
