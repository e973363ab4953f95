#ifndef PLUMBLINE_WORKER_H3_DECODERS_VIDEO_DECODER_H_
#define PLUMBLINE_WORKER_H3_DECODERS_VIDEO_DECODER_H_

#include <array>
#include <cstdint>
#include <functional>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/types/span.h"
#include "worker/h3/decoders/blend.h"
#include "worker/h3/decoders/config.h"
#include "worker/h3/decoders/graph_calls.h"
#include "worker/h3/decoders/tiling.h"
#include "worker/h3/latent_rows.h"

namespace plumbline::h3 {

// Latents of a video to pixels, a clip at a time, as AutoencoderKLMiniMaxH3.decode does it: tiles
// of a clip one after another, then joined. One thread.
class VideoDecoder {
 public:
  // `calls` are those of BuildVideoDecoderGraph(config); it must outlive the decoder. `latents` are
  // (channels, frames, height, width) values as the transformer left them, that is normalised.
  // INVALID_ARGUMENT for latents of another number of channels, too few of them, and tiles that
  // cannot be.
  static absl::StatusOr<VideoDecoder> Create(const VideoDecoderConfig& config,
                                             const TilingOptions& tiling, BlendRounding blend,
                                             const VideoLatentShape& shape,
                                             absl::Span<const float> latents, GraphCalls* calls);

  const ClipPlan& plan() const { return plan_; }
  const TileAxis& rows() const { return rows_; }
  const TileAxis& columns() const { return columns_; }
  int64_t height() const { return shape_.height * config_.patch_size; }
  int64_t width() const { return shape_.width * config_.patch_size; }

  // Clip `clip` (3, frames of a clip, height, width), as the decoder gives it: before mean,
  // standard deviation and clamp.
  absl::StatusOr<std::vector<float>> DecodeClip(int64_t clip);

 private:
  VideoDecoder(const VideoDecoderConfig& config, BlendRounding blend, const VideoLatentShape& shape,
               ClipPlan plan, GraphCalls* calls)
      : config_(config), blend_(blend), shape_(shape), plan_(plan), calls_(calls) {}

  // The pixels of one tile of a clip (3, frames of a clip, rows_.length, columns_.length).
  absl::StatusOr<std::vector<float>> DecodeTile(int64_t clip, int64_t top, int64_t left);

  VideoDecoderConfig config_;
  BlendRounding blend_;
  VideoLatentShape shape_;
  ClipPlan plan_;
  GraphCalls* calls_;
  TileAxis rows_;
  TileAxis columns_;
  std::vector<float> latents_;  // No longer normalised.
  std::vector<double> positions_;
};

// "position_ids" of a tile of so many latent frames, lines and columns, and the rows of the
// appended tokens, which are zero: 2 pi times 2 (i + 0.5) / n - 1 on each axis, in float32.
std::vector<double> VideoPositions(const std::array<int64_t, 3>& extents, int64_t appended);

// What a decoder's value means as red, green or blue in [0, 1]: value * std + mean of the channel,
// in float32, clamped. NaN stays NaN.
float ToPixel(float value, int64_t channel);

}  // namespace plumbline::h3

#endif  // PLUMBLINE_WORKER_H3_DECODERS_VIDEO_DECODER_H_
