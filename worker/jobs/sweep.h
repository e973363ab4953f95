// The sweep job: how far the leaf gradients of a block are from golden, over seeds of the inputs,
// for the candidate and, node by node, for hybrids of candidate and provider.
#ifndef PLUMBLINE_WORKER_JOBS_SWEEP_H_
#define PLUMBLINE_WORKER_JOBS_SWEEP_H_

#include "absl/status/statusor.h"
#include "proto/plumbline/v1/job.pb.h"
#include "worker/h3/weight_source.h"
#include "worker/jobs/job.h"

namespace plumbline::jobs {

// Runs a specification whose kind is sweep, with at most one layout. A sweep has no gate of its
// own; what a sample says is whether block replay's leaf gate would pass it. INVALID_ARGUMENT names
// the field and what is accepted.
absl::StatusOr<JobResult> RunSweep(const v1::JobSpec& spec, const h3::WeightSource& weights,
                                   const JobEnvironment& environment);

}  // namespace plumbline::jobs

#endif  // PLUMBLINE_WORKER_JOBS_SWEEP_H_
