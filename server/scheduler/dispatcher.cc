#include "server/scheduler/dispatcher.h"

#include <algorithm>

#include "absl/strings/str_cat.h"
#include "absl/strings/strip.h"
#include "common/logging.h"
#include "common/status.h"
#include "server/proto_util.h"
#include "server/resource_name.h"
#include "server/scheduler/job_plan.h"

namespace plumbline::server {
namespace {

std::string IdOf(const v1::Job& job) { return std::string(absl::StripPrefix(job.name(), "jobs/")); }

// What an operator wants to read: how jobs and attempts go. Of durable events.
void LogChanges(const std::vector<v1::JobEvent>& events) {
  for (const v1::JobEvent& event : events) {
    if (event.has_job_state()) {
      Log(LogLevel::kInfo, "job changed",
          {{"job", event.job()},
           {"state", v1::JobState_Name(event.job_state().state())},
           {"outcome", v1::Outcome_Name(event.job_state().verdict().outcome())},
           {"reason", event.job_state().message()}});
    } else if (event.has_attempt_change()) {
      const v1::Attempt& attempt = event.attempt_change();
      const bool began = attempt.end() == v1::ATTEMPT_END_UNSPECIFIED;
      Log(LogLevel::kInfo, began ? "attempt began" : "attempt ended",
          {{"job", event.job()},
           {"task", event.task()},
           {"attempt", attempt.number()},
           {"worker", attempt.worker()},
           {"end", v1::AttemptEnd_Name(attempt.end())},
           {"reason", attempt.message()}});
    }
  }
}

}  // namespace

Dispatcher::Dispatcher(Clock* clock, IdSource* ids, Store* store, EventHub* hub, Options options)
    : clock_(clock),
      ids_(ids),
      store_(store),
      hub_(hub),
      options_(std::move(options)),
      scheduler_(clock, options_.scheduler) {}

Dispatcher::~Dispatcher() { StopClock(); }

void Dispatcher::StopClock() {
  {
    absl::MutexLock lock(&mutex_);
    stopping_ = true;
  }
  if (timer_.joinable()) timer_.join();
}

absl::Status Dispatcher::Start() {
  absl::MutexLock lock(&mutex_);
  newest_job_ = store_->NewestJobNumber();
  scheduler_.RestoreFencingToken(store_->NewestFencingToken());
  PLUMBLINE_ASSIGN_OR_RETURN(std::vector<store::WorkerRecord> workers, store_->ReadWorkers());
  for (store::WorkerRecord& worker : workers) scheduler_.RestoreWorker(std::move(worker));
  PLUMBLINE_ASSIGN_OR_RETURN(const std::vector<int64_t> jobs, store_->LiveJobs());
  for (const int64_t number : jobs) PLUMBLINE_RETURN_IF_ERROR(LoadJob(number));
  PLUMBLINE_ASSIGN_OR_RETURN(const auto leases, store_->ReadLeases());
  for (const auto& [key, lease] : leases) PLUMBLINE_RETURN_IF_ERROR(LoadLease(key, lease));
  timer_ = std::thread([this] { TimerLoop(); });
  return absl::OkStatus();
}

absl::Status Dispatcher::LoadJob(int64_t number) {
  PLUMBLINE_ASSIGN_OR_RETURN(store::JobRecord job, store_->ReadJob(number));
  PLUMBLINE_ASSIGN_OR_RETURN(std::vector<store::TaskRecord> tasks, store_->ReadTasks(number));
  live_jobs_[IdOf(job.job())] = number;
  scheduler_.RestoreJob(number, std::move(job), std::move(tasks));
  return absl::OkStatus();
}

absl::Status Dispatcher::LoadLease(TaskKey key, const store::LeaseRecord& lease) {
  constexpr int kPage = 1000;
  constexpr int64_t kPageBytes = 8 << 20;
  PLUMBLINE_ASSIGN_OR_RETURN(const store::TaskRecord task, store_->ReadTask(key));
  int64_t first = 0;
  int64_t last = 0;
  int64_t after = 0;
  while (true) {
    PLUMBLINE_ASSIGN_OR_RETURN(const std::vector<v1::JobEvent> events,
                               store_->ReadEvents(key.job, after, kPage, kPageBytes));
    if (events.empty()) break;
    for (const v1::JobEvent& event : events) {
      after = event.sequence();
      // Bodies from workers have the larger field numbers.
      if (event.task() != task.task().name() || event.attempt() != lease.attempt() ||
          event.body_case() < v1::JobEvent::kProgress) {
        continue;
      }
      if (first == 0) first = event.sequence();
      last = event.sequence();
    }
  }
  scheduler_.RestoreLease(key, lease, first, last);
  return absl::OkStatus();
}

v1::AuditEvent Dispatcher::Audit(const Caller& caller, absl::string_view resource,
                                 absl::string_view message) const {
  v1::AuditEvent event;
  *event.mutable_time() = ToTimestamp(clock_->Now());
  event.set_principal(caller.principal);
  event.set_role(caller.role);
  event.set_method(caller.method);
  event.set_resource(std::string(resource));
  event.set_message(std::string(message));
  return event;
}

std::vector<v1::JobEvent> Dispatcher::Commit(WriteSet set, DoneStatus done) {
  std::vector<int64_t> jobs = set.changed_jobs();
  std::vector<v1::JobEvent> logged;
  for (const v1::JobEvent& event : set.events()) {
    if (event.has_job_state() || event.has_attempt_change()) logged.push_back(event);
    const std::string id(absl::StripPrefix(event.job(), "jobs/"));
    const auto live = live_jobs_.find(id);
    if (live != live_jobs_.end() && !scheduler_.IsLive(live->second)) live_jobs_.erase(live);
  }
  const absl::Status refused = store_->Commit(
      &set,
      [hub = hub_, jobs = std::move(jobs), logged = std::move(logged), done](absl::Status status) {
        if (status.ok()) {
          LogChanges(logged);
          hub->Notify(jobs);
        }
        if (done) done(std::move(status));
      });
  if (!refused.ok() && done) Answer([done, refused] { done(refused); });
  return set.events();
}

void Dispatcher::CommitChanges(v1::AuditEvent audit, DoneStatus done) {
  WriteSet set = scheduler_.TakeChanges();
  set.AppendAudit(std::move(audit));
  Commit(std::move(set), std::move(done));
  ServePolls();
  Reschedule();
}

void Dispatcher::CreateJob(const Caller& caller, NewJob job, Done<int64_t> done) {
  absl::Status refused;
  {
    absl::MutexLock lock(&mutex_);
    std::pair<int64_t, std::string> known{0, ""};
    if (!job.request_id.empty()) {
      // What was created may not be durable yet; what is durable is no longer in memory.
      if (const auto found = new_requests_.find(job.request_id); found != new_requests_.end()) {
        known = found->second;
      } else if (absl::StatusOr<int64_t> number = store_->FindRequest(job.request_id);
                 number.ok()) {
        absl::StatusOr<store::JobRecord> record = store_->ReadJob(*number);
        if (record.ok()) known = {*number, record->request_sha256()};
      }
    }
    if (known.first != 0 && known.second != job.request_sha256) {
      refused = WithReason(
          absl::AlreadyExistsError(absl::StrCat("request_id ", Quoted(job.request_id),
                                                " came with another specification before")),
          "REQUEST_ID_REUSED");
    } else if (known.first != 0) {
      // Answered once the first request's job is durable too.
      Commit(WriteSet(), [done, number = known.first](absl::Status status) {
        status.ok() ? done(number) : done(std::move(status));
      });
      return;
    } else {
      const int64_t number = ++newest_job_;
      store::JobRecord record;
      record.set_request_id(job.request_id);
      record.set_request_sha256(job.request_sha256);
      v1::Job& created = *record.mutable_job();
      created = DescribeJob(std::move(job.spec));
      created.set_name(JobName(ids_->NewId()));
      created.set_creator(caller.principal);
      std::vector<store::TaskRecord> tasks = PlanTasks(created);
      for (store::TaskRecord& task : tasks) {
        if (!task.spec().has_generation()) continue;
        if (job.gate_identity.has_value()) *task.mutable_gate_identity() = *job.gate_identity;
        const auto against = job.against_runs.find(task.spec().generation().seeds(0));
        if (against != job.against_runs.end()) task.set_against_run(against->second);
      }
      v1::AuditEvent audit = Audit(caller, created.name());
      live_jobs_[IdOf(created)] = number;
      if (!job.request_id.empty()) {
        new_requests_[job.request_id] = {number, job.request_sha256};
      }
      scheduler_.AddJob(number, std::move(record), std::move(tasks));
      CommitChanges(std::move(audit),
                    [this, done, number, id = job.request_id](absl::Status status) {
                      if (!id.empty()) {
                        absl::MutexLock forget(&mutex_);
                        new_requests_.erase(id);
                      }
                      status.ok() ? done(number) : done(std::move(status));
                    });
      return;
    }
  }
  done(std::move(refused));
}

v1::Job Dispatcher::DescribeJob(v1::JobSpec spec) const {
  v1::Job job;
  job.set_kind(KindOf(spec));
  *job.mutable_spec() = std::move(spec);
  job.set_state(v1::JOB_STATE_QUEUED);
  job.mutable_verdict()->set_outcome(v1::OUTCOME_NOT_JUDGED);
  *job.mutable_create_time() = ToTimestamp(clock_->Now());
  return job;
}

void Dispatcher::CancelJob(const Caller& caller, int64_t number, std::string reason,
                           DoneStatus done) {
  absl::Status status;
  {
    absl::MutexLock lock(&mutex_);
    status = scheduler_.Cancel(number, reason);
    if (status.ok()) {
      absl::StatusOr<store::JobRecord> record = store_->ReadJob(number);
      CommitChanges(Audit(caller, record.ok() ? record->job().name() : "", reason),
                    std::move(done));
      return;
    }
    if (absl::IsNotFound(status)) {
      const absl::StatusOr<store::JobRecord> record = store_->ReadJob(number);
      status = record.status();
      if (record.ok() && record->job().state() != v1::JOB_STATE_CANCELLED) {
        status = WithReason(absl::FailedPreconditionError(absl::StrCat(
                                record->job().name(), " has finished; nothing is left to cancel")),
                            "JOB_FINISHED");
      }
    }
  }
  done(std::move(status));
}

void Dispatcher::DeleteJob(const Caller& caller, int64_t number, const store::JobRecord& record,
                           std::vector<v1::Artifact> artifacts, DoneStatus done) {
  {
    absl::MutexLock lock(&mutex_);
    if (!scheduler_.IsLive(number)) {
      WriteSet set;
      set.DeleteJob(number, record);
      for (const v1::Artifact& artifact : artifacts) set.DeleteArtifact(artifact);
      set.AppendAudit(Audit(caller, record.job().name()));
      Commit(std::move(set), std::move(done));
      return;
    }
  }
  done(WithReason(absl::FailedPreconditionError(
                      absl::StrCat(record.job().name(), " has not finished; cancel it first")),
                  "JOB_NOT_FINISHED"));
}

void Dispatcher::AddPresentState(int64_t number, v1::Job* job) const {
  absl::MutexLock lock(&mutex_);
  scheduler_.AddPresentState(number, job);
}

absl::StatusOr<TaskKey> Dispatcher::FindTask(const std::string& task, int64_t token) const {
  PLUMBLINE_ASSIGN_OR_RETURN(const TaskName name, ParseTaskName(task, "task"));
  TaskKey key;
  key.task = name.task;
  if (const auto live = live_jobs_.find(name.job_id); live != live_jobs_.end()) {
    key.job = live->second;
  } else if (absl::StatusOr<int64_t> number = store_->FindJob(name.job_id); number.ok()) {
    key.job = *number;
  } else {
    // Deleted: for its worker that is a lost lease like any other.
    return WithReason(absl::AbortedError(absl::StrCat(task, " is gone")), kLeaseLostReason);
  }
  return key;
}

absl::StatusOr<TaskKey> Dispatcher::CheckLease(const std::string& task, int64_t token) const {
  absl::MutexLock lock(&mutex_);
  PLUMBLINE_ASSIGN_OR_RETURN(const TaskKey key, FindTask(task, token));
  PLUMBLINE_RETURN_IF_ERROR(AnnotateStatus(store_->CheckLease(key, token), task));
  return key;
}

absl::StatusOr<StepOwner> Dispatcher::BeginStep(const std::string& task, int64_t token,
                                                const std::string& run) {
  absl::MutexLock lock(&mutex_);
  StepOwner owner;
  PLUMBLINE_ASSIGN_OR_RETURN(owner.task, FindTask(task, token));
  PLUMBLINE_RETURN_IF_ERROR(AnnotateStatus(store_->CheckLease(owner.task, token), task));
  PLUMBLINE_RETURN_IF_ERROR(scheduler_.NoteRun(owner.task, token, run));
  const v1::Attempt& attempt = *scheduler_.FindHeld(owner.task, token)->attempts().rbegin();
  owner.worker = attempt.worker();
  owner.attempt = attempt.number();
  owner.spec = *scheduler_.FindHeldSpec(owner.task, token);
  WriteSet set = scheduler_.TakeChanges();
  if (!set.empty()) Commit(std::move(set), nullptr);
  return owner;
}

void Dispatcher::NoteSavedStep(TaskKey key, int64_t token, int32_t step) {
  absl::MutexLock lock(&mutex_);
  scheduler_.NoteSavedStep(key, token, step);
  WriteSet set = scheduler_.TakeChanges();
  if (!set.empty()) Commit(std::move(set), nullptr);
}

std::vector<std::string> Dispatcher::JobsNeeding(const v1::Run& run) const {
  absl::MutexLock lock(&mutex_);
  return scheduler_.JobsNeeding(run);
}

void Dispatcher::ReportEvents(const v1::ReportEventsRequest& request, Done<int64_t> done) {
  absl::StatusOr<TaskKey> key = absl::InvalidArgumentError("");
  absl::Status status = CheckNumbers(request);
  if (status.ok()) {
    absl::MutexLock lock(&mutex_);
    key = FindTask(request.task(), request.fencing_token());
    status = key.status();
    if (status.ok()) {
      status = AnnotateStatus(store_->CheckLease(*key, request.fencing_token()), request.task());
    }
    if (status.ok()) {
      const int64_t token = request.fencing_token();
      const int64_t last = request.events().rbegin()->client_sequence();
      const v1::Progress* progress = nullptr;
      for (const auto& each : request.events()) {
        if (each.event().has_progress()) progress = &each.event().progress();
      }
      const absl::StatusOr<int64_t> fresh =
          scheduler_.AcceptEvents(*key, token, request.events(0).client_sequence(), last, progress);
      status = fresh.status();
      if (status.ok()) {
        for (int64_t i = request.events_size() - *fresh; i < request.events_size(); ++i) {
          const v1::JobEvent& event = request.events(static_cast<int>(i)).event();
          if (event.has_step()) scheduler_.CountStep(*key, event.step());
          if (event.has_sensitivity()) scheduler_.NoteSensitivity(*key, event.sensitivity());
        }
        // Durable once what was committed before is: known events cost an empty set.
        WriteSet set = scheduler_.TakeChanges();
        const v1::Task& task = *scheduler_.FindHeld(*key, token);
        for (int64_t i = request.events_size() - *fresh; i < request.events_size(); ++i) {
          v1::JobEvent event = request.events(static_cast<int>(i)).event();
          event.set_job(task.name().substr(0, task.name().find("/tasks/")));
          event.set_task(task.name());
          event.set_attempt(task.attempts().rbegin()->number());
          set.AppendEvent(key->job, std::move(event));
        }
        const int64_t newest = *scheduler_.NewestClientSequence(*key, token);
        const std::vector<v1::JobEvent> events =
            Commit(std::move(set), [done, newest](absl::Status committed) {
              committed.ok() ? done(newest) : done(std::move(committed));
            });
        if (!events.empty()) {
          scheduler_.NoteSequences(*key, events.front().sequence(), events.back().sequence());
        }
        return;
      }
    }
  }
  done(std::move(status));
}

absl::Status Dispatcher::CheckNumbers(const v1::ReportEventsRequest& request) {
  if (request.events().empty()) return FieldError("events", "is empty", "1 to 1000 events");
  for (int i = 1; i < request.events_size(); ++i) {
    const int64_t expected = request.events(i - 1).client_sequence() + 1;
    if (request.events(i).client_sequence() != expected) {
      return FieldError(absl::StrCat("events[", i, "].client_sequence"),
                        absl::StrCat(request.events(i).client_sequence(), " leaves a gap"),
                        absl::StrCat(expected));
    }
  }
  return absl::OkStatus();
}

void Dispatcher::AddArtifact(const Caller& caller, TaskKey key, int64_t token,
                             const v1::Artifact& artifact, Done<std::string> done) {
  absl::Status status;
  {
    absl::MutexLock lock(&mutex_);
    status = store_->CheckLease(key, token);
    const v1::Task* const task = scheduler_.FindHeld(key, token);
    if (status.ok() && task == nullptr) status = absl::InternalError("a lease without its task");
    if (status.ok()) {
      WriteSet set;
      set.RequireLease(key, token);
      std::string replaced;
      if (absl::StatusOr<v1::Artifact> earlier =
              store_->FindTaskArtifact(key, artifact.file_name());
          earlier.ok()) {
        set.DeleteArtifact(*earlier);
        replaced = earlier->name();
      }
      set.PutArtifact(artifact, key);
      v1::JobEvent event;
      event.set_job(task->name().substr(0, task->name().find("/tasks/")));
      *event.mutable_time() = ToTimestamp(clock_->Now());
      event.set_task(task->name());
      event.set_attempt(task->attempts().rbegin()->number());
      *event.mutable_artifact() = artifact;
      set.AppendEvent(key.job, std::move(event));
      set.AppendAudit(Audit(caller, artifact.name()));
      Commit(std::move(set), [done, replaced](absl::Status committed) {
        committed.ok() ? done(replaced) : done(std::move(committed));
      });
      return;
    }
  }
  done(std::move(status));
}

SchedulerCounts Dispatcher::Counts() const {
  absl::MutexLock lock(&mutex_);
  return scheduler_.counts();
}

SchedulerLoad Dispatcher::Load() const {
  absl::MutexLock lock(&mutex_);
  return scheduler_.Load();
}

}  // namespace plumbline::server
