#include "server/store/write_set.h"

#include <algorithm>
#include <utility>

#include "absl/strings/strip.h"
#include "server/proto_util.h"

namespace plumbline::server {
namespace {

std::string UploadedKey(const v1::Artifact& artifact) {
  return keys::UploadedArtifact(artifact.sha256(), artifact.file_name(),
                                artifact.role() == v1::ARTIFACT_ROLE_PLUGIN);
}

}  // namespace

void WriteSet::Put(Family family, std::string key, std::string value) {
  operations_.push_back({Operation::kPut, family, std::move(key), std::move(value)});
}

void WriteSet::Delete(Family family, std::string key) {
  operations_.push_back({Operation::kDelete, family, std::move(key), ""});
}

void WriteSet::DeletePrefix(Family family, const std::string& prefix) {
  operations_.push_back({Operation::kDeleteRange, family, prefix, keys::PrefixEnd(prefix)});
}

void WriteSet::RequireLease(TaskKey task, int64_t token) {
  required_leases_.push_back({task, token});
}

void WriteSet::GrantLease(TaskKey task, const store::LeaseRecord& lease) {
  lease_changes_.push_back({task, lease.fencing_token()});
  Put(Family::kLeases, keys::Lease(task), lease.SerializeAsString());
  Put(Family::kLeases, keys::FencingToken(), keys::Number(lease.fencing_token()));
}

void WriteSet::UpdateLease(TaskKey task, const store::LeaseRecord& lease) {
  RequireLease(task, lease.fencing_token());
  Put(Family::kLeases, keys::Lease(task), lease.SerializeAsString());
}

void WriteSet::EndLease(TaskKey task) {
  lease_changes_.push_back({task, 0});
  Delete(Family::kLeases, keys::Lease(task));
}

void WriteSet::CreateJob(int64_t job, const store::JobRecord& record) {
  Put(Family::kMeta, keys::NewestJob(), keys::Number(job));
  PutJob(job, record, /*live=*/true);
}

void WriteSet::PutJob(int64_t job, const store::JobRecord& record, bool live) {
  Put(Family::kJobs, keys::Job(job), record.SerializeAsString());
  Put(Family::kJobs, keys::JobId(absl::StripPrefix(record.job().name(), "jobs/")),
      keys::Number(job));
  if (!record.request_id().empty()) {
    Put(Family::kJobs, keys::RequestId(record.request_id()), keys::Number(job));
  }
  if (live) {
    Put(Family::kJobs, keys::LiveJob(job), "");
  } else {
    Delete(Family::kJobs, keys::LiveJob(job));
    Put(Family::kJobs, keys::FinishedJob(FromTimestamp(record.job().end_time()), job), "");
  }
}

void WriteSet::PutTask(TaskKey task, const store::TaskRecord& record) {
  Put(Family::kJobs, keys::Task(task), record.SerializeAsString());
}

void WriteSet::PutReport(TaskKey task, const v1::TaskReport& report) {
  Put(Family::kJobs, keys::Report(task), report.SerializeAsString());
}

void WriteSet::DeleteJob(int64_t job, const store::JobRecord& record) {
  Delete(Family::kJobs, keys::Job(job));
  Delete(Family::kJobs, keys::JobId(absl::StripPrefix(record.job().name(), "jobs/")));
  Delete(Family::kJobs, keys::FinishedJob(FromTimestamp(record.job().end_time()), job));
  if (!record.request_id().empty()) {
    Delete(Family::kJobs, keys::RequestId(record.request_id()));
  }
  DeletePrefix(Family::kJobs, keys::Tasks(job));
  DeletePrefix(Family::kJobs, keys::Reports(job));
  DeletePrefix(Family::kEvents, keys::Events(job));
  DeletePrefix(Family::kArtifacts, keys::JobArtifacts(job));
  store::Revision revision;
  revision.set_job(job);
  *revision.mutable_deleted() = record.job();
  deleted_jobs_.push_back(std::move(revision));
}

void WriteSet::TrimEvents(int64_t job, store::JobRecord record, int64_t first_kept) {
  record.set_first_sequence(first_kept);
  Put(Family::kJobs, keys::Job(job), record.SerializeAsString());
  operations_.push_back({Operation::kDeleteRange, Family::kEvents, keys::Event(job, 0),
                         keys::Event(job, first_kept)});
}

void WriteSet::AppendEvent(int64_t job, v1::JobEvent event) {
  event_jobs_.push_back(job);
  events_.push_back(std::move(event));
}

void WriteSet::PutFormat(const store::StoreFormat& format) {
  Put(Family::kMeta, keys::Format(), format.SerializeAsString());
}

void WriteSet::PutWorker(const store::WorkerRecord& record) {
  Put(Family::kMeta, keys::Worker(record.worker().name()), record.SerializeAsString());
}

void WriteSet::DeleteWorker(absl::string_view name) { Delete(Family::kMeta, keys::Worker(name)); }

void WriteSet::PutShare(absl::string_view group, absl::Duration used) {
  store::ShareRecord record;
  *record.mutable_used() = ToDuration(used);
  Put(Family::kMeta, keys::Share(group), record.SerializeAsString());
}

void WriteSet::DeleteShare(absl::string_view group) { Delete(Family::kMeta, keys::Share(group)); }

void WriteSet::PutArtifact(const v1::Artifact& artifact, std::optional<TaskKey> task) {
  Put(Family::kArtifacts, keys::Artifact(artifact.name()), artifact.SerializeAsString());
  Put(Family::kArtifacts,
      task.has_value() ? keys::TaskArtifact(*task, artifact.file_name()) : UploadedKey(artifact),
      artifact.name());
}

void WriteSet::DeleteArtifact(const v1::Artifact& artifact) {
  Delete(Family::kArtifacts, keys::Artifact(artifact.name()));
  if (artifact.task().empty()) {  // Those of tasks go with their job's index.
    Delete(Family::kArtifacts, UploadedKey(artifact));
  }
}

void WriteSet::PutUpload(const store::UploadRecord& upload) {
  Put(Family::kArtifacts, keys::Upload(upload.name()), upload.SerializeAsString());
}

void WriteSet::DeleteUpload(absl::string_view name) {
  Delete(Family::kArtifacts, keys::Upload(name));
}

std::vector<int64_t> WriteSet::changed_jobs() const {
  std::vector<int64_t> jobs = event_jobs_;
  for (const store::Revision& deleted : deleted_jobs_) jobs.push_back(deleted.job());
  std::sort(jobs.begin(), jobs.end());
  jobs.erase(std::unique(jobs.begin(), jobs.end()), jobs.end());
  return jobs;
}

void WriteSet::AppendAudit(v1::AuditEvent event) { audits_.push_back(std::move(event)); }

void WriteSet::PutRun(const store::RunRecord& record) {
  Put(Family::kRuns, keys::Run(absl::StripPrefix(record.run().name(), "runs/")),
      record.SerializeAsString());
}

void WriteSet::DeleteRun(absl::string_view run) { Delete(Family::kRuns, keys::Run(run)); }

void WriteSet::PutStep(absl::string_view run, const v1::StepRecord& step) {
  Put(Family::kSteps, keys::Step(run, step.index()), step.SerializeAsString());
}

void WriteSet::DeleteStep(absl::string_view run, int32_t index) {
  Delete(Family::kSteps, keys::Step(run, index));
}

void WriteSet::PutBlobRecord(absl::string_view sha256, const store::BlobRecord& record) {
  if (record.references() > 0) {
    Put(Family::kSteps, keys::BlobRecord(sha256), record.SerializeAsString());
  } else {
    Delete(Family::kSteps, keys::BlobRecord(sha256));
  }
}

}  // namespace plumbline::server
