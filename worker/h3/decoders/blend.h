#ifndef PLUMBLINE_WORKER_H3_DECODERS_BLEND_H_
#define PLUMBLINE_WORKER_H3_DECODERS_BLEND_H_

#include <cstdint>
#include <vector>

#include "absl/types/span.h"
#include "worker/h3/decoders/tiling.h"

// How decoded tiles become a clip, and clips a video.

namespace plumbline::h3 {

// What a cross-fade computes in: the weights i / n and 1 - i / n, both products and their sum each
// rounded to it. The provider on a GPU fades what autocast left in float16.
enum class BlendRounding { kFloat32, kFloat16 };

// How much of both sides position `index` of a cross-fade of `extent` positions takes.
struct FadeWeights {
  FadeWeights(int64_t index, int64_t extent, BlendRounding rounding);

  float before;
  float after;
};

// from(i) * weights.before + to(i) * weights.after, written to `to`.
void CrossFade(const float* from, int64_t count, const FadeWeights& weights, BlendRounding rounding,
               float* to);

// Joins the tiles of a clip. A tile is blended first with the unblended tile above it, then with
// the unblended tile to its left, and gives what no later tile covers. One thread.
class TileJoiner {
 public:
  // A clip has (channels * frames) planes of rows.covered by columns.covered pixels.
  TileJoiner(int64_t planes, TileAxis rows, TileAxis columns, int64_t height, int64_t width,
             BlendRounding rounding);

  // Tiles in order, row by row: (planes, rows.length, columns.length).
  void Add(std::vector<float> tile);

  // After the last tile: (planes, height, width).
  std::vector<float> Take() { return std::move(joined_); }

 private:
  void Join(size_t i, size_t j, absl::Span<const float> tile);

  const int64_t planes_;
  const TileAxis rows_;
  const TileAxis columns_;
  const int64_t height_;
  const int64_t width_;
  const BlendRounding rounding_;
  size_t next_ = 0;
  std::vector<std::vector<float>> above_;    // The row of tiles before the present one.
  std::vector<std::vector<float>> present_;  // Those of it that there are.
  std::vector<float> joined_;
};

// Joins the clips of a video. One thread.
class ClipJoiner {
 public:
  // Frames have (channels, height, width) values.
  ClipJoiner(const ClipPlan& plan, int64_t channels, int64_t pixels, BlendRounding rounding)
      : plan_(plan), channels_(channels), pixels_(pixels), rounding_(rounding) {}

  // The frames that the next clip (channels, frames of a clip, height, width) makes final, one
  // after another: (n, channels, height, width), n being ClipPlan::FramesOf().
  std::vector<float> Add(absl::Span<const float> clip);

  // What it remembers between two clips, in the order (frame, channel, height, width): the frames
  // that the next clip fades from; and how to go on with them.
  const std::vector<float>& tail() const { return tail_; }
  void Resume(int64_t next_clip, std::vector<float> tail);

 private:
  const ClipPlan plan_;
  const int64_t channels_;
  const int64_t pixels_;
  const BlendRounding rounding_;
  int64_t next_ = 0;
  std::vector<float> tail_;
};

}  // namespace plumbline::h3

#endif  // PLUMBLINE_WORKER_H3_DECODERS_BLEND_H_
