#include "worker/h3/decoders/video_decoder.h"

#include <algorithm>
#include <utility>

#include "absl/strings/str_cat.h"
#include "common/status.h"
#include "worker/h3/decoders/graphs.h"

namespace plumbline::h3 {
namespace {

// Of ImageNet, which the autoencoder was trained in.
constexpr float kPixelMean[] = {0.485f, 0.456f, 0.406f};
constexpr float kPixelStd[] = {0.229f, 0.224f, 0.225f};

}  // namespace

float ToPixel(float value, int64_t channel) {
  const float pixel = value * kPixelStd[channel] + kPixelMean[channel];
  if (pixel < 0.0f) return 0.0f;
  return pixel > 1.0f ? 1.0f : pixel;
}

std::vector<double> VideoPositions(const std::array<int64_t, 3>& extents, int64_t appended) {
  constexpr float kTwoPi = 6.2831853071795864769f;
  std::array<std::vector<float>, 3> axes;
  for (size_t axis = 0; axis < 3; ++axis) {
    const auto size = static_cast<float>(extents[axis]);
    for (int64_t i = 0; i < extents[axis]; ++i) {
      const float coordinate = 2.0f * ((static_cast<float>(i) + 0.5f) / size) - 1.0f;
      axes[axis].push_back(kTwoPi * coordinate);
    }
  }
  std::vector<double> positions;
  for (const float time : axes[0]) {
    for (const float line : axes[1]) {
      for (const float column : axes[2]) positions.insert(positions.end(), {time, line, column});
    }
  }
  positions.resize(positions.size() + static_cast<size_t>(3 * appended), 0.0);
  return positions;
}

absl::StatusOr<VideoDecoder> VideoDecoder::Create(const VideoDecoderConfig& config,
                                                  const TilingOptions& tiling, BlendRounding blend,
                                                  const VideoLatentShape& shape,
                                                  absl::Span<const float> latents,
                                                  GraphCalls* calls) {
  if (shape.channels != config.latent_channels || shape.height < 1 || shape.width < 1 ||
      shape.frames < 1 || static_cast<int64_t>(latents.size()) != shape.NumElements()) {
    return absl::InvalidArgumentError(
        absl::StrCat("latents of ", shape.channels, " channels, ", shape.frames, " frames, ",
                     shape.height, " lines and ", shape.width, " columns; the decoder takes ",
                     config.latent_channels, " channels and at least one of the others"));
  }
  PLUMBLINE_RETURN_IF_ERROR(CheckTiling(tiling, config, ""));
  PLUMBLINE_ASSIGN_OR_RETURN(const ClipPlan plan, PlanClips(config, shape.frames));
  VideoDecoder decoder(config, blend, shape, plan, calls);
  decoder.rows_ = SplitAxis(decoder.height(), config.patch_size, tiling);
  decoder.columns_ = SplitAxis(decoder.width(), config.patch_size, tiling);
  decoder.latents_.assign(latents.begin(), latents.end());
  const int64_t channel_values = shape.NumElements() / shape.channels;
  for (int64_t i = 0; i < shape.NumElements(); ++i) {
    const auto channel = static_cast<size_t>(i / channel_values);
    float& value = decoder.latents_[static_cast<size_t>(i)];
    value = value * static_cast<float>(config.latents_std[channel]) +
            static_cast<float>(config.latents_mean[channel]);
  }
  decoder.positions_ = VideoPositions({plan.clip_latents, decoder.rows_.length / config.patch_size,
                                       decoder.columns_.length / config.patch_size},
                                      config.num_register_tokens + 1);
  return decoder;
}

absl::StatusOr<std::vector<float>> VideoDecoder::DecodeClip(int64_t clip) {
  const int64_t planes = config_.out_channels * plan_.clip_latents * config_.patch_size_t;
  TileJoiner joiner(planes, rows_, columns_, height(), width(), blend_);
  for (const int64_t top : rows_.starts) {
    for (const int64_t left : columns_.starts) {
      PLUMBLINE_ASSIGN_OR_RETURN(std::vector<float> tile, DecodeTile(clip, top, left));
      joiner.Add(std::move(tile));
    }
  }
  return joiner.Take();
}

absl::StatusOr<std::vector<float>> VideoDecoder::DecodeTile(int64_t clip, int64_t top,
                                                            int64_t left) {
  const int64_t patch = config_.patch_size;
  const int64_t patch_t = config_.patch_size_t;
  const int64_t frames = plan_.clip_latents;
  const int64_t lines = rows_.length / patch;
  const int64_t columns = columns_.length / patch;
  const int64_t voxels = frames * lines * columns;
  std::vector<float> tokens(static_cast<size_t>(voxels * shape_.channels));
  float* token = tokens.data();
  for (int64_t f = 0; f < frames; ++f) {
    for (int64_t y = 0; y < lines; ++y) {
      for (int64_t x = 0; x < columns; ++x) {
        for (int64_t c = 0; c < shape_.channels; ++c) {
          const int64_t frame = c * shape_.frames + plan_.LatentOf(clip, f);
          const int64_t line = frame * shape_.height + top / patch + y;
          *token++ = latents_[static_cast<size_t>(line * shape_.width + left / patch + x)];
        }
      }
    }
  }
  RowCounts rows;
  rows.voxels = voxels;
  PLUMBLINE_RETURN_IF_ERROR(calls_->Prepare(rows, /*batch=*/1));
  PLUMBLINE_RETURN_IF_ERROR(calls_->SetInput(
      kDecoderLatents, Tensor::Dense(tokens.data(), DType::kF32, 1, voxels, shape_.channels)));
  PLUMBLINE_RETURN_IF_ERROR(calls_->SetInput(
      kDecoderPositions, Tensor::Dense(positions_.data(), DType::kF64, 1,
                                       static_cast<int64_t>(positions_.size()) / 3, 3)));
  PLUMBLINE_ASSIGN_OR_RETURN(const std::vector<float> patches, calls_->Run());

  // Patches (channel, frame, line, column) of the voxels, put where they belong.
  std::vector<float> pixels(static_cast<size_t>(voxels * config_.PatchValues()));
  const float* from = patches.data();
  for (int64_t f = 0; f < frames; ++f) {
    for (int64_t y = 0; y < lines; ++y) {
      for (int64_t x = 0; x < columns; ++x) {
        for (int64_t c = 0; c < config_.out_channels; ++c) {
          for (int64_t t = 0; t < patch_t; ++t) {
            const int64_t frame = (c * frames + f) * patch_t + t;
            for (int64_t row = 0; row < patch; ++row, from += patch) {
              const int64_t line = frame * rows_.length + y * patch + row;
              std::copy(from, from + patch, pixels.data() + line * columns_.length + x * patch);
            }
          }
        }
      }
    }
  }
  return pixels;
}

}  // namespace plumbline::h3
