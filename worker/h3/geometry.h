#ifndef PLUMBLINE_WORKER_H3_GEOMETRY_H_
#define PLUMBLINE_WORKER_H3_GEOMETRY_H_

#include <cstdint>

#include "absl/status/statusor.h"

// How frames, seconds and pixels become latents, as the released pipeline computes it.

namespace plumbline::h3 {

// Pixels a side of one latent, video frames a second, audio latents a second.
inline constexpr int64_t kPixelsPerLatent = 16;
inline constexpr int64_t kFramesPerSecond = 24;
inline constexpr int64_t kAudioLatentsPerSecond = 40;

// Durations that the released model accepts, in aligned frames: 5 to 15 seconds.
inline constexpr int64_t kMinReleasedFrames = 124;
inline constexpr int64_t kMaxReleasedFrames = 345;

// Counts of frames that any of these functions takes.
inline constexpr int64_t kMaxFrames = 1 << 16;

// The next count of the form 17 n + 5. `frames` is 1 to kMaxFrames.
int64_t AlignFrames(int64_t frames);

// 5 n + 2 latent frames for 17 n + 5 frames. INVALID_ARGUMENT for any other count.
absl::StatusOr<int64_t> LatentFrames(int64_t aligned_frames);

// Audio latents of each channel for `frames` frames, to the nearest.
int64_t AudioLatents(int64_t frames);

struct Canvas {
  int64_t height;  // Pixels; a multiple of 32.
  int64_t width;

  friend bool operator==(const Canvas& a, const Canvas& b) {
    return a.height == b.height && a.width == b.width;
  }
};

// The canvas for an aspect ratio of `width_ratio` to `height_ratio`, both 1 to 65536, or
// INVALID_ARGUMENT if that is outside 1:4 to 4:1. The short side is 768; a canvas of more than 768
// * 1344 pixels is scaled down to that; then both sides go to the nearest multiple of 32.
absl::StatusOr<Canvas> CanvasForAspectRatio(int64_t width_ratio, int64_t height_ratio);

}  // namespace plumbline::h3

#endif  // PLUMBLINE_WORKER_H3_GEOMETRY_H_
