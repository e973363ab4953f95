#ifndef PLUMBLINE_WORKER_H3_CONFIG_H_
#define PLUMBLINE_WORKER_H3_CONFIG_H_

#include <array>
#include <cstdint>
#include <string>

#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"

namespace plumbline::h3 {

// The transformer's configuration: the keys of transformer/config.json, as diffusers'
// MiniMaxH3Transformer3DModel names them. A default-constructed one is not valid.
struct TransformerConfig {
  int64_t num_attention_heads = 0;
  int64_t attention_head_dim = 0;  // Channels of one head; even.
  int64_t hidden_size = 0;         // Width of the residual stream.
  int64_t num_layers = 0;          // Blocks.
  int64_t num_refiner_layers = 0;  // Blocks of the text refiner.
  int64_t ffn_dim = 0;             // Inner width of SwiGLU; its projection has twice as many rows.
  int64_t in_channels = 0;         // Channels of a video latent.
  int64_t audio_in_channels = 0;   // Channels of an audio latent: the width of an audio row.
  std::array<int64_t, 3>
      patch_size{};      // Latents of one video row in (time, height, width): (1, 2, 2).
  int64_t text_dim = 0;  // Width of a text row.
  int64_t freq_dim = 0;  // Features of a timestep: cosines, then as many sines.
  int64_t time_embed_hidden_dim = 0;
  int64_t time_embed_dim = 0;
  int64_t rope_freq_dim = 0;  // Rotary frequencies of each of the three axes.
  double rope_theta = 0;
  double norm_eps = 0;
  double qk_norm_eps = 0;
  double final_norm_eps = 0;

  // Width of queries, keys and values: all heads side by side. Wider than `hidden_size` in the
  // released model.
  int64_t AttentionWidth() const { return num_attention_heads * attention_head_dim; }
  // Values of one video row, in the order (channel, time, height, width).
  int64_t VideoRowWidth() const {
    return in_channels * patch_size[0] * patch_size[1] * patch_size[2];
  }
  // Channels of each head that rotate: three axes, two halves.
  int64_t RotaryChannels() const { return 6 * rope_freq_dim; }

  friend bool operator==(const TransformerConfig& a, const TransformerConfig& b);
  friend bool operator!=(const TransformerConfig& a, const TransformerConfig& b) {
    return !(a == b);
  }
};

// OK if a model of this shape can be built: every size is positive and so small that no product of
// sizes of one tensor overflows, heads are even and hold the rotary channels, the patch is (1, 2,
// 2), the numbers are finite and positive. Otherwise INVALID_ARGUMENT with every violation; fields
// are named "SOURCE: key".
absl::Status ValidateTransformerConfig(const TransformerConfig& config, absl::string_view source);

// Parses and validates the text of a transformer/config.json. `source` says in errors where the
// text came from. Every key must be there and no other may; keys that begin with '_' are diffusers'
// own and are not read, but for `_class_name`, which must be the transformer's if it is there.
absl::StatusOr<TransformerConfig> ParseTransformerConfig(absl::string_view json,
                                                         absl::string_view source);

// The keys as a JSON object, sorted, without white space, doubles with the fewest digits that read
// back the same: equal for equal configurations, however their files were written.
std::string CanonicalConfigJson(const TransformerConfig& config);

// The released model: 50 blocks of width 5376, 33 B parameters.
TransformerConfig ReleasedConfig();

// The small instance in tests/golden/checkpoint: 2 blocks of width 128.
TransformerConfig TinyConfig();

}  // namespace plumbline::h3

#endif  // PLUMBLINE_WORKER_H3_CONFIG_H_
