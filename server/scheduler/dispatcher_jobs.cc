// The dispatcher's side of jobs: made, cancelled and deleted.
#include <utility>

#include "absl/strings/str_cat.h"
#include "absl/strings/strip.h"
#include "common/status.h"
#include "server/proto_util.h"
#include "server/resource_name.h"
#include "server/scheduler/dispatcher.h"
#include "server/scheduler/job_plan.h"

namespace plumbline::server {

absl::StatusOr<std::pair<int64_t, std::string>> Dispatcher::FindRequest(
    const std::string& request_id) const {
  if (request_id.empty()) return std::make_pair(int64_t{0}, std::string());
  // What was created may not be durable yet; what is durable is no longer in memory.
  const auto found = new_requests_.find(request_id);
  if (found != new_requests_.end()) return found->second;
  const absl::StatusOr<int64_t> number = store_->FindRequest(request_id);
  if (absl::IsNotFound(number.status())) return std::make_pair(int64_t{0}, std::string());
  PLUMBLINE_RETURN_IF_ERROR(number.status());
  PLUMBLINE_ASSIGN_OR_RETURN(const store::JobRecord record, store_->ReadJob(*number));
  return std::make_pair(*number, record.request_sha256());
}

absl::Status Dispatcher::CheckRoom(const NewJob& job, size_t tasks) const {
  const int64_t limit = options_.scheduler.max_live_tasks;
  if (scheduler_.live_tasks() + static_cast<int64_t>(tasks) > limit) {
    return WithReason(absl::ResourceExhaustedError(absl::StrCat(
                          tasks, " more tasks would be too many: ", scheduler_.live_tasks(), " of ",
                          limit, " are live")),
                      "TOO_MANY_TASKS");
  }
  const auto check_live = [this](const store::Dependency& each) {
    mutex_.AssertReaderHeld();
    return scheduler_.IsLive(each.job_number())
               ? absl::OkStatus()
               : WithReason(absl::AbortedError(absl::StrCat(each.job(), " has just ended")),
                            kReferencesChangedReason);
  };
  for (const auto* const waits_for : {&job.waits_for, &job.quality_waits_for}) {
    for (const store::Dependency& each : *waits_for) PLUMBLINE_RETURN_IF_ERROR(check_live(each));
  }
  for (const auto& [seed, each] : job.seed_waits_for) PLUMBLINE_RETURN_IF_ERROR(check_live(each));
  return absl::OkStatus();
}

std::vector<store::TaskRecord> Dispatcher::PlanTasksOf(const NewJob& job,
                                                       const v1::Job& created) const {
  std::vector<store::TaskRecord> tasks = PlanTasks(created);
  for (store::TaskRecord& task : tasks) {
    for (const store::Dependency& each : job.waits_for) *task.add_waits_for() = each;
    if (task.spec().has_generation()) {
      const uint64_t seed = task.spec().generation().seeds(0);
      if (job.gate_identity.has_value()) *task.mutable_gate_identity() = *job.gate_identity;
      const auto against = job.against_runs.find(seed);
      if (against != job.against_runs.end()) task.set_against_run(against->second);
      const auto waits = job.seed_waits_for.find(seed);
      if (waits != job.seed_waits_for.end()) *task.add_waits_for() = waits->second;
    }
  }
  if (created.spec().has_generation()) {
    std::vector<store::TaskRecord> quality = PlanQuality(created, newest_job_ + 1, tasks);
    for (store::TaskRecord& task : quality) {
      for (const store::Dependency& each : job.quality_waits_for) *task.add_waits_for() = each;
      tasks.push_back(std::move(task));
    }
  }
  for (store::TaskRecord& task : tasks) {
    for (const store::Dependency& each : task.waits_for()) {
      const bool of_task =
          each.use() == store::Dependency::USE_AGAINST || each.use() == store::Dependency::USE_TASK;
      task.mutable_task()->add_depends_on(of_task ? TaskNameOf(each.job(), each.task())
                                                  : each.job());
    }
  }
  return tasks;
}

void Dispatcher::CreateJob(const Caller& caller, NewJob job, Done<int64_t> done) {
  absl::Status refused;
  {
    absl::MutexLock lock(&mutex_);
    const absl::StatusOr<std::pair<int64_t, std::string>> known = FindRequest(job.request_id);
    if (!known.ok()) {
      refused = known.status();
    } else if (known->first != 0 && known->second != job.request_sha256) {
      refused = WithReason(
          absl::AlreadyExistsError(absl::StrCat("request_id ", Quoted(job.request_id),
                                                " came with another specification before")),
          "REQUEST_ID_REUSED");
    } else if (known->first != 0) {
      // Answered once the first request's job is durable too.
      Commit(WriteSet(), [done, number = known->first](absl::Status status) {
        status.ok() ? done(number) : done(std::move(status));
      });
      return;
    } else {
      v1::Job created = DescribeJob(job.spec);
      created.set_name(JobName(ids_->NewId()));
      created.set_creator(caller.principal);
      std::vector<store::TaskRecord> tasks = PlanTasksOf(job, created);
      refused = CheckRoom(job, tasks.size());
      if (absl::IsAborted(refused)) {
        // Once what is queued is durable, the caller sees how those jobs ended.
        Commit(WriteSet(), [done, refused](absl::Status status) {
          done(status.ok() ? refused : std::move(status));
        });
        return;
      }
      if (refused.ok()) {
        AddJob(caller, std::move(job), std::move(created), std::move(tasks), std::move(done));
        return;
      }
    }
  }
  done(std::move(refused));
}

void Dispatcher::AddJob(const Caller& caller, NewJob job, v1::Job created,
                        std::vector<store::TaskRecord> tasks, Done<int64_t> done) {
  const int64_t number = ++newest_job_;
  v1::AuditEvent audit = Audit(caller, created.name());
  live_jobs_[std::string(absl::StripPrefix(created.name(), "jobs/"))] = number;
  if (!job.request_id.empty()) new_requests_[job.request_id] = {number, job.request_sha256};
  store::JobRecord record;
  record.set_request_id(job.request_id);
  record.set_request_sha256(job.request_sha256);
  *record.mutable_job() = std::move(created);
  scheduler_.AddJob(number, std::move(record), std::move(tasks));
  CommitChanges(std::move(audit), [this, done, number, id = job.request_id](absl::Status status) {
    if (!id.empty()) {
      absl::MutexLock forget(&mutex_);
      new_requests_.erase(id);
    }
    status.ok() ? done(number) : done(std::move(status));
  });
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
  absl::Status refused = WithReason(absl::FailedPreconditionError(absl::StrCat(
                                        record.job().name(), " has not finished; cancel it first")),
                                    "JOB_NOT_FINISHED");
  {
    absl::MutexLock lock(&mutex_);
    if (deleting_.contains(number)) {
      refused = WithReason(absl::NotFoundError("the job was deleted"), "NOT_FOUND");
    } else if (!scheduler_.IsLive(number)) {
      deleting_.insert(number);
      WriteSet set;
      set.DeleteJob(number, record);
      for (const v1::Artifact& artifact : artifacts) set.DeleteArtifact(artifact);
      set.AppendAudit(Audit(caller, record.job().name()));
      Commit(std::move(set), [this, number, done = std::move(done)](absl::Status status) {
        {
          absl::MutexLock forget(&mutex_);
          deleting_.erase(number);
        }
        done(std::move(status));
      });
      return;
    }
  }
  done(std::move(refused));
}

absl::Status Dispatcher::TrimEvents(int64_t number) {
  absl::MutexLock lock(&mutex_);
  if (scheduler_.IsLive(number) || deleting_.contains(number)) return absl::OkStatus();
  absl::StatusOr<store::JobRecord> record = store_->ReadJob(number);
  if (absl::IsNotFound(record.status())) return absl::OkStatus();
  PLUMBLINE_RETURN_IF_ERROR(record.status());
  PLUMBLINE_ASSIGN_OR_RETURN(const int64_t newest, store_->NewestSequence(number));
  if (newest == 0 || record->first_sequence() >= newest) return absl::OkStatus();
  WriteSet set;
  set.TrimEvents(number, *std::move(record), newest);
  Commit(std::move(set), nullptr);
  return absl::OkStatus();
}

}  // namespace plumbline::server
