#ifndef PLUMBLINE_WORKER_MEDIA_COMPARE_MEDIA_H_
#define PLUMBLINE_WORKER_MEDIA_COMPARE_MEDIA_H_

#include <cstdint>
#include <functional>
#include <string>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "kernels/cpu/thread_pool.h"
#include "proto/plumbline/v1/drift.pb.h"
#include "proto/plumbline/v1/generation.pb.h"
#include "worker/media/ffmpeg_library.h"
#include "worker/media/tensor_media.h"

namespace plumbline::media {

struct MediaComparisonOptions {
  v1::QualityBounds bounds;  // What is not set is the default.
  // Asked before every frame; an error ends the comparison with it.
  std::function<absl::Status()> check_cancelled;
  // Frames compared so far, of all. May be null.
  std::function<void(int64_t done, int64_t total)> on_progress;
  // Where a video of the difference goes, made by `ffmpeg`: mid-grey where both are equal, four
  // times the difference of subject and reference about it; as its sound the difference of both.
  // Empty: none.
  std::string difference_path;
  const FfmpegLibrary* ffmpeg = nullptr;
};

// `bounds` with the defaults filled in: PSNR 30 dB, SSIM 0.99, temporal RMSE 0.01, audio relative
// L2 0.05.
v1::QualityBounds WithDefaultBounds(v1::QualityBounds bounds);

// OK if there is a number to compute: both have a picture, of one size, rate and number of frames,
// or none; and both a sound, of one rate and number of channels and samples, or none.
// INVALID_ARGUMENT on `field`, reason SHAPE_DIFFERS, says what differs.
absl::Status CheckSameShape(const Media& subject, const Media& reference, absl::string_view field);

// How far `subject` is from `reference`, held to the bounds; both must have the same shape. Reads
// them in step, a frame of each at a time. INVALID_ARGUMENT for frames too small for SSIM, or more
// of them than a report can hold; otherwise the errors of the sources and of the options.
absl::StatusOr<v1::QualityReport> CompareMedia(Media* subject, Media* reference,
                                               const MediaComparisonOptions& options,
                                               ThreadPool* threads);

// What the gates of a report come to. `what` begins the sentence, e.g. "seed 42".
v1::Verdict JudgeQuality(const v1::QualityReport& report, absl::string_view what);

}  // namespace plumbline::media

#endif  // PLUMBLINE_WORKER_MEDIA_COMPARE_MEDIA_H_
