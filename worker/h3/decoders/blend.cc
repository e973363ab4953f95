#include "worker/h3/decoders/blend.h"

#include <algorithm>
#include <utility>

#include "kernels/numerics/float16.h"

namespace plumbline::h3 {
namespace {

float Round(float value, BlendRounding rounding) {
  return rounding == BlendRounding::kFloat16 ? RoundThroughF16(value) : value;
}

}  // namespace

FadeWeights::FadeWeights(int64_t index, int64_t extent, BlendRounding rounding) {
  after = Round(static_cast<float>(index) / static_cast<float>(extent), rounding);
  before = Round(1.0f - after, rounding);
}

void CrossFade(const float* from, int64_t count, const FadeWeights& weights, BlendRounding rounding,
               float* to) {
  if (rounding == BlendRounding::kFloat32) {
    for (int64_t i = 0; i < count; ++i) to[i] = from[i] * weights.before + to[i] * weights.after;
    return;
  }
  for (int64_t i = 0; i < count; ++i) {
    to[i] = RoundThroughF16(RoundThroughF16(from[i] * weights.before) +
                            RoundThroughF16(to[i] * weights.after));
  }
}

TileJoiner::TileJoiner(int64_t planes, TileAxis rows, TileAxis columns, int64_t height,
                       int64_t width, BlendRounding rounding)
    : planes_(planes),
      rows_(std::move(rows)),
      columns_(std::move(columns)),
      height_(height),
      width_(width),
      rounding_(rounding),
      joined_(static_cast<size_t>(planes * height * width)) {}

void TileJoiner::Add(std::vector<float> tile) {
  const size_t i = next_ / columns_.count();
  const size_t j = next_ % columns_.count();
  ++next_;
  if (j == 0) above_ = std::exchange(present_, {});
  Join(i, j, tile);
  present_.push_back(std::move(tile));
}

void TileJoiner::Join(size_t i, size_t j, absl::Span<const float> tile) {
  const int64_t tile_height = rows_.length;
  const int64_t tile_width = columns_.length;
  const int64_t above = rows_.OverlapBefore(i);
  const int64_t left = columns_.OverlapBefore(j);
  // What the tile below or to the right covers is its own.
  const int64_t row_end =
      i + 1 < rows_.count() ? tile_height - rows_.OverlapBefore(i + 1) : tile_height;
  const int64_t column_end =
      j + 1 < columns_.count() ? tile_width - columns_.OverlapBefore(j + 1) : tile_width;
  const float* const tile_above = above > 0 ? above_[j].data() : nullptr;
  const float* const tile_left = left > 0 ? present_[j - 1].data() : nullptr;
  std::vector<FadeWeights> left_weights;
  for (int64_t x = 0; x < left; ++x) left_weights.emplace_back(x, left, rounding_);
  for (int64_t plane = 0; plane < planes_; ++plane) {
    const int64_t plane_offset = plane * tile_height * tile_width;
    for (int64_t y = 0; y < row_end; ++y) {
      const float* const from = tile.data() + plane_offset + y * tile_width;
      float* const to =
          joined_.data() + (plane * height_ + rows_.starts[i] + y) * width_ + columns_.starts[j];
      std::copy(from, from + column_end, to);
      if (y < above) {
        CrossFade(tile_above + plane_offset + (tile_height - above + y) * tile_width, column_end,
                  FadeWeights(y, above, rounding_), rounding_, to);
      }
      for (int64_t x = 0; x < std::min(left, column_end); ++x) {
        CrossFade(tile_left + plane_offset + y * tile_width + tile_width - left + x, 1,
                  left_weights[static_cast<size_t>(x)], rounding_, to + x);
      }
    }
  }
}

std::vector<float> ClipJoiner::Add(absl::Span<const float> clip) {
  const int64_t clip_index = next_++;
  const int64_t part = plan_.dropped + plan_.kept;  // Frames of a clip's first part.
  const int64_t clip_frames = part + plan_.dropped + plan_.faded;
  const int64_t frame_values = channels_ * pixels_;
  // Frame `index` of the clip, in the order of the result.
  const auto copy_frame = [&](int64_t index, float* to) {
    for (int64_t channel = 0; channel < channels_; ++channel) {
      const float* const from = clip.data() + (channel * clip_frames + index) * pixels_;
      std::copy(from, from + pixels_, to + channel * pixels_);
    }
  };
  std::vector<float> frames(static_cast<size_t>(frame_values * (plan_.kept + plan_.faded)));
  for (int64_t frame = 0; frame < plan_.kept; ++frame) {
    float* const to = frames.data() + frame * frame_values;
    copy_frame(plan_.dropped + frame, to);
    if (tail_.empty() || frame >= plan_.faded) continue;
    CrossFade(tail_.data() + frame * frame_values, frame_values,
              FadeWeights(frame, plan_.faded, rounding_), rounding_, to);
  }
  for (int64_t frame = 0; frame < plan_.faded; ++frame) {
    copy_frame(part + plan_.dropped + frame, frames.data() + (plan_.kept + frame) * frame_values);
  }
  tail_.assign(frames.begin() + plan_.kept * frame_values, frames.end());
  frames.resize(static_cast<size_t>(plan_.FramesOf(clip_index) * frame_values));
  return frames;
}

void ClipJoiner::Resume(int64_t next_clip, std::vector<float> tail) {
  next_ = next_clip;
  tail_ = std::move(tail);
}

}  // namespace plumbline::h3
