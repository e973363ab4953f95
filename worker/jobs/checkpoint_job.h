#ifndef PLUMBLINE_WORKER_JOBS_CHECKPOINT_JOB_H_
#define PLUMBLINE_WORKER_JOBS_CHECKPOINT_JOB_H_

#include <string>

#include "absl/status/statusor.h"
#include "proto/plumbline/v1/job.pb.h"
#include "worker/jobs/job.h"

namespace plumbline::jobs {

// Scans the checkpoint of `spec` and judges it, by the manifest at `manifest_path` where that is
// not empty, or writes a manifest, a file of the result, unless something is wrong with it. The
// verdict is PARTIAL where nothing is wrong and no manifest was given: digests and orders are then
// not judged. INVALID_ARGUMENT: there is no such checkpoint, or the manifest is refused.
absl::StatusOr<JobResult> RunCheckpointCheck(const v1::JobSpec& spec,
                                             const std::string& manifest_path,
                                             const JobEnvironment& environment);

}  // namespace plumbline::jobs

#endif  // PLUMBLINE_WORKER_JOBS_CHECKPOINT_JOB_H_
