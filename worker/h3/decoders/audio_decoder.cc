#include "worker/h3/decoders/audio_decoder.h"

#include "absl/strings/str_cat.h"
#include "common/status.h"
#include "worker/h3/decoders/graphs.h"

namespace plumbline::h3 {

absl::StatusOr<std::vector<float>> DecodeAudio(const AudioDecoderConfig& config, int64_t channels,
                                               int64_t latents, absl::Span<const float> values,
                                               GraphCalls* calls) {
  const int64_t width = config.latent_channels;
  if (channels < 1 || latents < 1 ||
      static_cast<int64_t>(values.size()) != channels * width * latents) {
    return absl::InvalidArgumentError(absl::StrCat(
        values.size(), " audio latents for ", channels, " channels and ", latents,
        " instants; the decoder takes ", width, " for each of both, and at least one of both"));
  }
  // One row an instant, no longer normalised.
  std::vector<float> rows(values.size());
  for (int64_t channel = 0; channel < channels; ++channel) {
    for (int64_t i = 0; i < width; ++i) {
      for (int64_t t = 0; t < latents; ++t) {
        float value = values[static_cast<size_t>((channel * width + i) * latents + t)];
        if (!config.latents_std.empty()) {
          value = value * static_cast<float>(config.latents_std[static_cast<size_t>(i)]) +
                  static_cast<float>(config.latents_mean[static_cast<size_t>(i)]);
        }
        rows[static_cast<size_t>((channel * latents + t) * width + i)] = value;
      }
    }
  }
  RowCounts counts;
  counts.audio_latents = latents;
  PLUMBLINE_RETURN_IF_ERROR(calls->Prepare(counts, channels));
  PLUMBLINE_RETURN_IF_ERROR(calls->SetInput(
      kDecoderLatents, Tensor::Dense(rows.data(), DType::kF32, channels, latents, width)));
  PLUMBLINE_ASSIGN_OR_RETURN(std::vector<float> samples, calls->Run());
  for (float& sample : samples) {
    if (sample < -1.0f) sample = -1.0f;
    if (sample > 1.0f) sample = 1.0f;
  }
  return samples;
}

}  // namespace plumbline::h3
