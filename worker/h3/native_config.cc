#include "worker/h3/native_config.h"

#include <nlohmann/json.hpp>
#include <vector>

#include "common/json.h"
#include "common/status.h"

namespace plumbline::h3 {
namespace {

constexpr JsonLimits kLimits = {.max_bytes = 1 << 16, .max_values = 1024};
constexpr int64_t kMaxSize = 1 << 24;  // ValidateTransformerConfig has the real limits.

struct SizeKey {
  absl::string_view key;
  int64_t TransformerConfig::*member;
  bool required;
};

constexpr SizeKey kSizeKeys[] = {
    {"hidden_size", &TransformerConfig::hidden_size, true},
    {"num_layers", &TransformerConfig::num_layers, true},
    {"num_attention_heads", &TransformerConfig::num_attention_heads, true},
    {"ffn_hidden_size", &TransformerConfig::ffn_dim, true},
    {"token_refiner_num_layers", &TransformerConfig::num_refiner_layers, false},
    {"attention_head_dim", &TransformerConfig::attention_head_dim, false},
    {"latents_dim", &TransformerConfig::in_channels, false},
    {"audio_latents_dim", &TransformerConfig::audio_in_channels, false},
    {"text_dim", &TransformerConfig::text_dim, false},
    {"timestep_input_dim", &TransformerConfig::freq_dim, false},
    {"time_embed_hidden_size", &TransformerConfig::time_embed_hidden_dim, false},
    {"time_embed_dim", &TransformerConfig::time_embed_dim, false},
    {"rope_inv_freq_len", &TransformerConfig::rope_freq_dim, false},
};

struct NumberKey {
  absl::string_view key;
  double TransformerConfig::*member;
};

constexpr NumberKey kNumberKeys[] = {
    {"rope_theta", &TransformerConfig::rope_theta},
    {"norm_eps", &TransformerConfig::norm_eps},
    {"qk_norm_eps", &TransformerConfig::qk_norm_eps},
    {"final_norm_eps", &TransformerConfig::final_norm_eps},
};

constexpr absl::string_view kPatchSizeKey = "patch_size";

}  // namespace

bool IsNativeConfig(absl::string_view json) {
  const absl::StatusOr<nlohmann::json> object = ParseJson(json, "", kLimits);
  return object.ok() && object->is_object() &&
         (object->contains("ffn_hidden_size") || object->contains("token_refiner_num_layers"));
}

absl::StatusOr<TransformerConfig> ParseNativeConfig(absl::string_view json,
                                                    absl::string_view source) {
  PLUMBLINE_ASSIGN_OR_RETURN(const nlohmann::json object, ParseJson(json, source, kLimits));
  if (!object.is_object()) {
    return FieldError(source, "not a JSON object", "the keys of a transformer's configuration");
  }
  TransformerConfig config = ReleasedConfig();
  for (const SizeKey& size : kSizeKeys) {
    if (!size.required && !object.contains(size.key)) continue;
    PLUMBLINE_ASSIGN_OR_RETURN(config.*size.member, GetInt(object, source, size.key, 1, kMaxSize));
  }
  for (const NumberKey& number : kNumberKeys) {
    if (!object.contains(number.key)) continue;
    PLUMBLINE_ASSIGN_OR_RETURN(config.*number.member, GetDouble(object, source, number.key));
  }
  if (object.contains(kPatchSizeKey)) {
    PLUMBLINE_ASSIGN_OR_RETURN(const std::vector<int64_t> patch,
                               GetIntArray(object, source, kPatchSizeKey, 3, 3, 1, 64));
    config.patch_size = {patch[0], patch[1], patch[2]};
  }
  PLUMBLINE_RETURN_IF_ERROR(ValidateTransformerConfig(config, source));
  return config;
}

}  // namespace plumbline::h3
