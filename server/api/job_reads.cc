#include "server/api/job_reads.h"

#include <utility>
#include <vector>

#include "common/status.h"
#include "server/resource_name.h"

namespace plumbline::server {

absl::StatusOr<int64_t> FindJob(const Api& api, absl::string_view name, absl::string_view field) {
  PLUMBLINE_ASSIGN_OR_RETURN(const std::string id, ParseName(name, "jobs", field));
  return api.store->FindJob(id);
}

absl::StatusOr<v1::Job> ReadWholeJob(const Api& api, int64_t number) {
  PLUMBLINE_ASSIGN_OR_RETURN(store::JobRecord record, api.store->ReadJob(number));
  v1::Job job = std::move(*record.mutable_job());
  PLUMBLINE_ASSIGN_OR_RETURN(std::vector<store::TaskRecord> tasks, api.store->ReadTasks(number));
  for (store::TaskRecord& task : tasks) *job.add_tasks() = std::move(*task.mutable_task());
  PLUMBLINE_ASSIGN_OR_RETURN(std::vector<v1::Artifact> artifacts,
                             api.store->ReadArtifactsOf(number));
  for (v1::Artifact& artifact : artifacts) *job.add_artifacts() = std::move(artifact);
  PLUMBLINE_RETURN_IF_ERROR(CompleteListedJob(api, number, &job));
  return job;
}

absl::Status CompleteListedJob(const Api& api, int64_t number, v1::Job* job) {
  PLUMBLINE_ASSIGN_OR_RETURN(const int64_t newest, api.store->NewestSequence(number));
  job->set_last_sequence(newest);
  api.dispatcher->AddPresentState(number, job);
  return absl::OkStatus();
}

}  // namespace plumbline::server
