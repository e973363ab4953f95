// The full model job: every tensor of the transformer, forward and backward, at one layout, as
// validation.md's "Full model" lays it down. Golden, providers and candidate run in lockstep; what
// they hand out is compared as it appears and dropped.
#ifndef PLUMBLINE_WORKER_JOBS_FULL_MODEL_H_
#define PLUMBLINE_WORKER_JOBS_FULL_MODEL_H_

#include "absl/status/statusor.h"
#include "proto/plumbline/v1/job.pb.h"
#include "worker/h3/weight_source.h"
#include "worker/jobs/full_model_inputs.h"
#include "worker/jobs/job.h"

namespace plumbline::jobs {

// Runs a specification whose kind is full_model, with at most one layout. The result has the
// report, its files (a rule that was made here, saved and kept tensors) and every identity.
//
// No figure of the candidate is handed to anybody before a rule that is made here was reported to
// on_rule_frozen.
//
// INVALID_ARGUMENT, before anything is computed, names the field (of JobSpec or FullModelSpec) and
// what is accepted: the layout, a composition, provider, fault or pattern; a capture with missing
// or extra names or other shapes; a rule that was changed, or made for another checkpoint, inputs,
// tensors or device, with what differs. RESOURCE_EXHAUSTED where the device's memory is too small;
// FAILED_PRECONDITION where the providers make no rule.
absl::StatusOr<JobResult> RunFullModel(const v1::JobSpec& spec, const FullModelFiles& files,
                                       const h3::WeightSource& weights,
                                       const JobEnvironment& environment);

}  // namespace plumbline::jobs

#endif  // PLUMBLINE_WORKER_JOBS_FULL_MODEL_H_
