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
    } else if (event.has_step()) {
      Log(LogLevel::kInfo, "step done",
          {{"job", event.job()},
           {"task", event.task()},
           {"attempt", event.attempt()},
           {"step", event.step().step()},
           {"run", event.step().run()},
           {"origin", v1::StepOrigin_Name(event.step().origin())},
           {"seconds", event.step().seconds()}});
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
  PLUMBLINE_ASSIGN_OR_RETURN(newest_job_, store_->NewestJobNumber());
  PLUMBLINE_ASSIGN_OR_RETURN(const int64_t newest_token, store_->NewestFencingToken());
  scheduler_.RestoreFencingToken(newest_token);
  PLUMBLINE_ASSIGN_OR_RETURN(std::vector<store::WorkerRecord> workers, store_->ReadWorkers());
  for (store::WorkerRecord& worker : workers) scheduler_.RestoreWorker(std::move(worker));
  PLUMBLINE_ASSIGN_OR_RETURN(const std::vector<int64_t> jobs, store_->LiveJobs());
  for (const int64_t number : jobs) PLUMBLINE_RETURN_IF_ERROR(LoadJob(number));
  PLUMBLINE_ASSIGN_OR_RETURN(const auto leases, store_->ReadLeases());
  for (const auto& [key, lease] : leases) PLUMBLINE_RETURN_IF_ERROR(LoadLease(key, lease));
  PLUMBLINE_ASSIGN_OR_RETURN(const auto shares, store_->ReadShares());
  scheduler_.RestoreShares(shares);
  const bool restored = store_->format().restored();
  if (restored) scheduler_.LoseAllLeases("the coordinator was restored from a backup");
  scheduler_.EndRestore();
  WriteSet set = scheduler_.TakeChanges();
  if (restored) {
    store::StoreFormat format = store_->format();
    format.clear_restored();
    set.PutFormat(format);
  }
  if (!set.empty()) Commit(std::move(set), nullptr);
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
    if (event.has_job_state() || event.has_attempt_change() || event.has_step()) {
      logged.push_back(event);
    }
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
  } else if (!absl::IsNotFound(number.status())) {
    return number.status();
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

std::vector<std::string> Dispatcher::JobsNeeding(const v1::Run& run) const {
  absl::MutexLock lock(&mutex_);
  return scheduler_.JobsNeeding(run);
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
