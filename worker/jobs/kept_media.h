#ifndef PLUMBLINE_WORKER_JOBS_KEPT_MEDIA_H_
#define PLUMBLINE_WORKER_JOBS_KEPT_MEDIA_H_

#include <string>

#include "absl/status/statusor.h"
#include "worker/jobs/job.h"

namespace plumbline::jobs {

// Makes the MP4 of frames that a worker without FFmpeg kept (or of any frames and samples in
// safetensors): the very bytes that it would have made itself. `path` is where they lie on this
// machine, `source` what they are called. INVALID_ARGUMENT on "decode.kept" for a file without
// frames; UNAVAILABLE without FFmpeg.
absl::StatusOr<JobResult> MakeKeptMedia(const std::string& path, const std::string& source,
                                        const JobEnvironment& environment);

}  // namespace plumbline::jobs

#endif  // PLUMBLINE_WORKER_JOBS_KEPT_MEDIA_H_
