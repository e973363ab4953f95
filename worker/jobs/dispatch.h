#ifndef PLUMBLINE_WORKER_JOBS_DISPATCH_H_
#define PLUMBLINE_WORKER_JOBS_DISPATCH_H_

#include "absl/status/statusor.h"
#include "proto/plumbline/v1/job.pb.h"
#include "worker/jobs/job.h"

namespace plumbline::jobs {

// Does what a task's specification says. Errors are the job's own: INVALID_ARGUMENT for what only a
// worker can see is wrong; UNIMPLEMENTED, naming it, for a kind of job that this worker does not
// know; RESOURCE_EXHAUSTED where the device's memory is too small; CANCELLED. No message tells
// where a fetched file lies on this machine. One thread.
absl::StatusOr<JobResult> RunJob(const v1::JobSpec& spec, const JobEnvironment& environment);

}  // namespace plumbline::jobs

#endif  // PLUMBLINE_WORKER_JOBS_DISPATCH_H_
