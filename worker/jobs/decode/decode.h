#ifndef PLUMBLINE_WORKER_JOBS_DECODE_DECODE_H_
#define PLUMBLINE_WORKER_JOBS_DECODE_DECODE_H_

#include <string>

#include "absl/status/statusor.h"
#include "proto/plumbline/v1/job.pb.h"
#include "worker/jobs/generation/setup.h"
#include "worker/jobs/job.h"

namespace plumbline::jobs {

// Decodes latents: of a file, or of a finished run, whose saved steps are replayed. `latents` is
// where the file lies on this machine, `files` those that the run was made from. INVALID_ARGUMENT
// names the field of whatever is wrong; otherwise errors as Decoding's, and DATA_LOSS, reason
// STEP_INCONSISTENT, for a run whose saved steps do not fit.
absl::StatusOr<JobResult> RunDecode(const v1::JobSpec& spec, const std::string& latents,
                                    const GenerationFiles& files,
                                    const JobEnvironment& environment);

}  // namespace plumbline::jobs

#endif  // PLUMBLINE_WORKER_JOBS_DECODE_DECODE_H_
