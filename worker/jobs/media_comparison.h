#ifndef PLUMBLINE_WORKER_JOBS_MEDIA_COMPARISON_H_
#define PLUMBLINE_WORKER_JOBS_MEDIA_COMPARISON_H_

#include <functional>
#include <string>

#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "proto/plumbline/v1/comparison.pb.h"
#include "worker/jobs/job.h"

namespace plumbline::jobs {

// Brings a file to this machine; `field` names it in errors.
using InputFetcher =
    std::function<absl::StatusOr<std::string>(const v1::InputFile& file, absl::string_view field)>;

// How far one media file is from another; with a video of the difference where it is asked for. The
// verdict is that of the bounds. INVALID_ARGUMENT on "comparison.media.a" or ".b" for files that
// are not read, and, reason SHAPE_DIFFERS, where A has not the shape of B: then nothing is
// computed.
absl::StatusOr<JobResult> RunMediaComparison(const v1::ComparisonSpec::MediaPair& pair,
                                             const InputFetcher& fetch,
                                             const JobEnvironment& environment);

// One seed of two generations: `pair` with its sides filled in. Judged by the bounds of A's
// contract; the spread and the repeat are shown beside it. FAILED_PRECONDITION, reason
// NOISE_DIFFERS, where a side began with another noise than B, and INVALID_ARGUMENT, reason
// SHAPE_DIFFERS, where its media have another shape: then nothing is computed. NOT_JUDGED where A
// or B has no frames.
absl::StatusOr<JobResult> RunGenerationComparison(const v1::ComparisonSpec::GenerationPair& pair,
                                                  const InputFetcher& fetch,
                                                  const JobEnvironment& environment);

}  // namespace plumbline::jobs

#endif  // PLUMBLINE_WORKER_JOBS_MEDIA_COMPARISON_H_
