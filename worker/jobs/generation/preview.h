#ifndef PLUMBLINE_WORKER_JOBS_GENERATION_PREVIEW_H_
#define PLUMBLINE_WORKER_JOBS_GENERATION_PREVIEW_H_

#include <string>

#include "absl/status/statusor.h"
#include "absl/types/span.h"
#include "worker/h3/latent_rows.h"

namespace plumbline::jobs {

// The most that a preview takes, in bytes; larger latents are shown with pixels left out.
inline constexpr size_t kMaxPreviewBytes = 64 << 10;

// A small picture (PNG) of the middle frame of target latents, `rows` being (rows, channels * 4):
// a pixel a latent, red, green and blue three fixed, orthonormal combinations of its channels (the
// second to fourth vectors of the cosine basis), 0 mid-grey and the standard deviation of noise a
// fifth of the range. It shows structure as it comes out of the noise; its colours are nobody's.
absl::StatusOr<std::string> LatentPreview(const h3::VideoLatentShape& shape,
                                          absl::Span<const float> rows);

}  // namespace plumbline::jobs

#endif  // PLUMBLINE_WORKER_JOBS_GENERATION_PREVIEW_H_
