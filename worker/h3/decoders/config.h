#ifndef PLUMBLINE_WORKER_H3_DECODERS_CONFIG_H_
#define PLUMBLINE_WORKER_H3_DECODERS_CONFIG_H_

#include <cstdint>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"

namespace plumbline::h3 {

// What the video decoder needs of vae/config.json, as diffusers' AutoencoderKLMiniMaxH3 names it.
// The encoder's keys are not read.
struct VideoDecoderConfig {
  int64_t latent_channels = 0;
  int64_t out_channels = 0;  // 3: red, green, blue.
  int64_t num_layers = 0;
  int64_t num_attention_heads = 0;
  int64_t attention_head_dim = 0;
  int64_t num_register_tokens = 0;
  int64_t ffn_mult = 0;  // Inner width of SwiGLU over the width.
  double rope_theta = 0;
  double rope_dim_ratio = 0;  // Part of a head's channels that rotate.
  double norm_eps = 0;
  int64_t clip_length = 0;  // Pixel frames that the encoder read at a time.
  int64_t token_drop = 0;   // Latent frames that it dropped behind each.
  int64_t patch_size = 0;   // Pixels a side of one latent voxel.
  int64_t patch_size_t = 0;
  std::vector<double> latents_mean;  // By channel.
  std::vector<double> latents_std;

  int64_t Width() const { return num_attention_heads * attention_head_dim; }
  // Frequencies of each of the three axes.
  int64_t RotaryFrequencies() const;
  // Values of one voxel: (channel, frame, line, column).
  int64_t PatchValues() const { return out_channels * patch_size_t * patch_size * patch_size; }
};

// What the audio decoder needs of audio_vae/config.json, as diffusers' AutoencoderKLMiniMaxH3Audio
// names it.
struct AudioDecoderConfig {
  int64_t latent_channels = 0;
  int64_t latent_dim = 0;
  int64_t decoder_dim = 0;  // Channels before the first stage; halved by each.
  std::vector<int64_t> rates;
  std::vector<int64_t> kernel_sizes;
  std::vector<int64_t> resblock_kernel_sizes;
  std::vector<std::vector<int64_t>> resblock_dilation_sizes;
  int64_t sampling_rate = 0;  // Hz.
  // By channel; empty: latents are not normalised.
  std::vector<double> latents_mean;
  std::vector<double> latents_std;

  int64_t SamplesPerLatent() const;
};

// Read and validate the text of a configuration. `source` says in errors where it came from. Every
// key that is read must be there; others may be.
absl::StatusOr<VideoDecoderConfig> ParseVideoDecoderConfig(absl::string_view json,
                                                           absl::string_view source);
absl::StatusOr<AudioDecoderConfig> ParseAudioDecoderConfig(absl::string_view json,
                                                           absl::string_view source);

// What is read as a JSON object, sorted, without white space: equal for equal configurations.
std::string CanonicalConfigJson(const VideoDecoderConfig& config);
std::string CanonicalConfigJson(const AudioDecoderConfig& config);

// The released decoders (latents not normalised: synthetic weights know no statistics) and the
// small ones in tests/golden/checkpoint.
VideoDecoderConfig ReleasedVideoDecoder();
VideoDecoderConfig TinyVideoDecoder();
AudioDecoderConfig ReleasedAudioDecoder();
AudioDecoderConfig TinyAudioDecoder();

}  // namespace plumbline::h3

#endif  // PLUMBLINE_WORKER_H3_DECODERS_CONFIG_H_
