#ifndef PLUMBLINE_WORKER_H3_DECODERS_TILING_H_
#define PLUMBLINE_WORKER_H3_DECODERS_TILING_H_

#include <cstdint>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "worker/h3/decoders/config.h"

// How a video is cut for its decoder: in space into tiles, in time into clips.

namespace plumbline::h3 {

// In pixels.
struct TilingOptions {
  bool enabled = true;
  int64_t tile = 256;
  int64_t overlap = 64;  // At the least.
};

// OK if the tiles can be decoded: a side and an overlap that are multiples of the patch, the
// overlap at most half of the side. Else INVALID_ARGUMENT on "PREFIXtile" or "PREFIXtile_overlap".
absl::Status CheckTiling(const TilingOptions& options, const VideoDecoderConfig& config,
                         absl::string_view prefix);

// The tiles of one axis.
struct TileAxis {
  std::vector<int64_t> starts;  // First pixel of each.
  int64_t length = 0;           // Pixels of each.

  size_t count() const { return starts.size(); }
  // Pixels that tile `index` shares with the one before it; 0 for the first.
  int64_t OverlapBefore(size_t index) const {
    return index == 0 ? 0 : starts[index - 1] + length - starts[index];
  }
};

// The fewest tiles that cover `pixels`; what they overlap too much is shared out among the overlaps
// in steps of `step` pixels, one each in turn from the first. One tile where it suffices, or where
// tiling is off.
TileAxis SplitAxis(int64_t pixels, int64_t step, const TilingOptions& options);

// What a clip is and how many there are, from the numbers of the decoder's configuration.
struct ClipPlan {
  int64_t latents = 0;       // Latent frames there are.
  int64_t clips = 0;         // At least 1.
  int64_t stride = 0;        // Latent frames from one clip to the next: 5.
  int64_t clip_latents = 0;  // Latent frames of a clip: 7.
  // Pixel frames of a clip that are dropped in front of each of its two parts, that its first part
  // keeps, and that its second part keeps to cross-fade with the next clip's first: 3, 17, 5.
  int64_t dropped = 0;
  int64_t kept = 0;
  int64_t faded = 0;
  int64_t frames = 0;  // Pixel frames in all.

  // The latent frame that frame `index` of clip `clip` is: the last one stands for those behind it.
  int64_t LatentOf(int64_t clip, int64_t index) const;
  // Frames that are final once clip `clip` is decoded; their sum is `frames`.
  int64_t FramesOf(int64_t clip) const;
};

// INVALID_ARGUMENT for fewer latent frames than make a clip.
absl::StatusOr<ClipPlan> PlanClips(const VideoDecoderConfig& config, int64_t latents);

}  // namespace plumbline::h3

#endif  // PLUMBLINE_WORKER_H3_DECODERS_TILING_H_
