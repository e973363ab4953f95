#include "worker/h3/config.h"

#include <cmath>
#include <nlohmann/json.hpp>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "common/json.h"
#include "common/status.h"

namespace plumbline::h3 {
namespace {

constexpr absl::string_view kClassName = "MiniMaxH3Transformer3DModel";
constexpr absl::string_view kClassNameKey = "_class_name";
constexpr absl::string_view kPatchSizeKey = "patch_size";
constexpr std::array<int64_t, 3> kPatchSize = {1, 2, 2};

struct SizeField {
  absl::string_view key;
  int64_t TransformerConfig::*member;
  int64_t max;
};

// The limits are some ten times the released values. The largest tensor that they allow has 18 *
// 2^16 * 2^16 = 2^36.2 values, and all parameters together stay below 2^52 bytes.
constexpr SizeField kSizeFields[] = {
    {"num_attention_heads", &TransformerConfig::num_attention_heads, 1024},
    {"attention_head_dim", &TransformerConfig::attention_head_dim, 1024},
    {"hidden_size", &TransformerConfig::hidden_size, 1 << 16},
    {"num_layers", &TransformerConfig::num_layers, 1024},
    {"num_refiner_layers", &TransformerConfig::num_refiner_layers, 1024},
    {"ffn_dim", &TransformerConfig::ffn_dim, 1 << 18},
    {"in_channels", &TransformerConfig::in_channels, 1024},
    {"audio_in_channels", &TransformerConfig::audio_in_channels, 1024},
    {"text_dim", &TransformerConfig::text_dim, 1 << 16},
    {"freq_dim", &TransformerConfig::freq_dim, 1 << 14},
    {"time_embed_hidden_dim", &TransformerConfig::time_embed_hidden_dim, 1 << 16},
    {"time_embed_dim", &TransformerConfig::time_embed_dim, 1 << 16},
    {"rope_freq_dim", &TransformerConfig::rope_freq_dim, 170},
};

struct NumberField {
  absl::string_view key;
  double TransformerConfig::*member;
  double min;
  double max;
};

constexpr NumberField kNumberFields[] = {
    {"rope_theta", &TransformerConfig::rope_theta, 1, 1e12},
    {"norm_eps", &TransformerConfig::norm_eps, 1e-30, 1},
    {"qk_norm_eps", &TransformerConfig::qk_norm_eps, 1e-30, 1},
    {"final_norm_eps", &TransformerConfig::final_norm_eps, 1e-30, 1},
};

absl::Status CheckKeys(const nlohmann::json& object, absl::string_view source) {
  std::vector<FieldViolation> violations;
  for (const auto& [key, value] : object.items()) {
    bool known = key.empty() ? false : key[0] == '_' || key == kPatchSizeKey;
    for (const SizeField& field : kSizeFields) known = known || key == field.key;
    for (const NumberField& field : kNumberFields) known = known || key == field.key;
    if (!known) {
      violations.push_back({absl::StrCat(source, ": ", Quoted(key)),
                            "no key of a MiniMax-H3 transformer's configuration"});
    }
  }
  return FieldErrors(violations);
}

}  // namespace

bool operator==(const TransformerConfig& a, const TransformerConfig& b) {
  for (const SizeField& field : kSizeFields) {
    if (a.*field.member != b.*field.member) return false;
  }
  for (const NumberField& field : kNumberFields) {
    if (a.*field.member != b.*field.member) return false;
  }
  return a.patch_size == b.patch_size;
}

absl::Status ValidateTransformerConfig(const TransformerConfig& config, absl::string_view source) {
  std::vector<FieldViolation> violations;
  auto refuse = [&](absl::string_view key, std::string description) {
    violations.push_back({absl::StrCat(source, ": ", key), std::move(description)});
  };
  for (const SizeField& field : kSizeFields) {
    const int64_t value = config.*field.member;
    if (value < 1 || value > field.max) {
      refuse(field.key, absl::StrCat(value, " is out of range; accepted: 1 to ", field.max));
    }
  }
  for (const NumberField& field : kNumberFields) {
    const double value = config.*field.member;
    if (!(value >= field.min && value <= field.max)) {  // Refuses NaN too.
      refuse(field.key,
             absl::StrCat(value, " is out of range; accepted: ", field.min, " to ", field.max));
    }
  }
  if (config.patch_size != kPatchSize) {
    refuse(kPatchSizeKey,
           absl::StrCat("[", absl::StrJoin(config.patch_size, ", "),
                        "] is not supported; accepted: [", absl::StrJoin(kPatchSize, ", "), "]"));
  }
  if (!violations.empty()) return FieldErrors(violations);

  if (config.attention_head_dim % 2 != 0) {
    refuse("attention_head_dim",
           absl::StrCat(config.attention_head_dim, " is odd; accepted: even values"));
  }
  if (config.freq_dim % 2 != 0) {
    refuse("freq_dim", absl::StrCat(config.freq_dim, " is odd; accepted: even values"));
  }
  if (config.RotaryChannels() > config.attention_head_dim) {
    refuse("rope_freq_dim",
           absl::StrCat(
               config.rope_freq_dim, " frequencies on three axes rotate ", config.RotaryChannels(),
               " channels and a head has ", config.attention_head_dim,
               "; accepted: at most attention_head_dim / 6 = ", config.attention_head_dim / 6));
  }
  return FieldErrors(violations);
}

absl::StatusOr<TransformerConfig> ParseTransformerConfig(absl::string_view json,
                                                         absl::string_view source) {
  PLUMBLINE_ASSIGN_OR_RETURN(const nlohmann::json object,
                             ParseJson(json, source, {.max_bytes = 1 << 16, .max_values = 1024}));
  if (!object.is_object()) {
    return FieldError(source, "not a JSON object", "the keys of a transformer's configuration");
  }
  if (object.contains(kClassNameKey)) {
    PLUMBLINE_ASSIGN_OR_RETURN(const std::string name, GetString(object, source, kClassNameKey));
    if (name != kClassName) {
      return FieldError(absl::StrCat(source, ": ", kClassNameKey),
                        absl::StrCat("the configuration of a ", Quoted(name)), kClassName);
    }
  }
  PLUMBLINE_RETURN_IF_ERROR(CheckKeys(object, source));

  TransformerConfig config;
  for (const SizeField& field : kSizeFields) {
    PLUMBLINE_ASSIGN_OR_RETURN(config.*field.member,
                               GetInt(object, source, field.key, 1, field.max));
  }
  for (const NumberField& field : kNumberFields) {
    PLUMBLINE_ASSIGN_OR_RETURN(config.*field.member,
                               GetDouble(object, source, field.key, field.min, field.max));
  }
  PLUMBLINE_ASSIGN_OR_RETURN(const std::vector<int64_t> patch,
                             GetIntArray(object, source, kPatchSizeKey, 3, 3, 1, 64));
  config.patch_size = {patch[0], patch[1], patch[2]};
  PLUMBLINE_RETURN_IF_ERROR(ValidateTransformerConfig(config, source));
  return config;
}

std::string CanonicalConfigJson(const TransformerConfig& config) {
  nlohmann::json object;  // Sorts its keys.
  for (const SizeField& field : kSizeFields) object[std::string(field.key)] = config.*field.member;
  for (const NumberField& field : kNumberFields) {
    object[std::string(field.key)] = config.*field.member;
  }
  object[std::string(kPatchSizeKey)] = config.patch_size;
  return object.dump();
}

TransformerConfig ReleasedConfig() {
  TransformerConfig config;
  config.num_attention_heads = 56;
  config.attention_head_dim = 128;
  config.hidden_size = 5376;
  config.num_layers = 50;
  config.num_refiner_layers = 2;
  config.ffn_dim = 14336;
  config.in_channels = 24;
  config.audio_in_channels = 32;
  config.patch_size = kPatchSize;
  config.text_dim = 5120;
  config.freq_dim = 256;
  config.time_embed_hidden_dim = 5376;
  config.time_embed_dim = 2688;
  config.rope_freq_dim = 16;
  config.rope_theta = 10000;
  config.norm_eps = 1e-5;
  config.qk_norm_eps = 1e-5;
  config.final_norm_eps = 1e-5;
  return config;
}

TransformerConfig TinyConfig() {
  TransformerConfig config = ReleasedConfig();
  config.num_attention_heads = 2;
  config.hidden_size = 128;
  config.num_layers = 2;
  config.ffn_dim = 256;
  config.text_dim = 64;
  config.time_embed_hidden_dim = 128;
  config.time_embed_dim = 64;
  return config;
}

}  // namespace plumbline::h3
