#ifndef PLUMBLINE_WORKER_H3_LATENT_ROWS_H_
#define PLUMBLINE_WORKER_H3_LATENT_ROWS_H_

#include <cstdint>

#include "absl/types/span.h"

// Between latents, as the autoencoders have them, and the rows that the transformer reads. All
// arrays are dense, and spans must be of exactly the size that the shape gives. Values are only
// moved.

namespace plumbline::h3 {

// A video row is a patch of this many latents a side, of one frame.
inline constexpr int64_t kPatchSide = 2;

struct VideoLatentShape {
  int64_t channels = 0;
  int64_t frames = 0;
  int64_t height = 0;  // Even.
  int64_t width = 0;   // Even.

  int64_t NumElements() const { return channels * frames * height * width; }
};

// (channels, frames, height, width) to (rows, channels * 4): rows by frame, then by line, then
// along it; values of a row in the order (channel, line, column).
void Patchify(const VideoLatentShape& shape, absl::Span<const float> latents,
              absl::Span<float> rows);

// The inverse.
void Unpatchify(const VideoLatentShape& shape, absl::Span<const float> rows,
                absl::Span<float> latents);

// Audio rows (2 * latents_per_channel, width), all of the left channel first, to (2, width,
// latents_per_channel).
void UnpackAudioRows(int64_t latents_per_channel, int64_t width, absl::Span<const float> rows,
                     absl::Span<float> latents);

}  // namespace plumbline::h3

#endif  // PLUMBLINE_WORKER_H3_LATENT_ROWS_H_
