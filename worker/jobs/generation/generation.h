#ifndef PLUMBLINE_WORKER_JOBS_GENERATION_GENERATION_H_
#define PLUMBLINE_WORKER_JOBS_GENERATION_GENERATION_H_

#include "absl/status/statusor.h"
#include "proto/plumbline/v1/job.pb.h"
#include "worker/h3/weight_source.h"
#include "worker/jobs/generation/setup.h"
#include "worker/jobs/job.h"

namespace plumbline::jobs {

// One seed of a generation: noise, one evaluation of the transformer and two Euler updates a step,
// the latents. Resumes where an earlier attempt was ended. Errors as GenerationSetup's and
// GenerationRun's. A negative control runs on a store of its own and leaves no step behind.
absl::StatusOr<JobResult> RunGeneration(const v1::JobSpec& spec, const GenerationFiles& files,
                                        const h3::WeightSource& weights,
                                        const JobEnvironment& environment);

// Computes one saved step again, from the inputs that its run had, under any composition, and
// compares. Under the composition that saved it the bytes must be equal.
// `spec.diagnostic.generation` says what the run was made from.
absl::StatusOr<JobResult> RunDiagnostic(const v1::JobSpec& spec, const GenerationFiles& files,
                                        const h3::WeightSource& weights,
                                        const JobEnvironment& environment);

}  // namespace plumbline::jobs

#endif  // PLUMBLINE_WORKER_JOBS_GENERATION_GENERATION_H_
