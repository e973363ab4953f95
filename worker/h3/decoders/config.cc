#include "worker/h3/decoders/config.h"

#include <algorithm>
#include <cmath>
#include <nlohmann/json.hpp>
#include <utility>

#include "absl/strings/str_cat.h"
#include "common/json.h"
#include "common/status.h"

namespace plumbline::h3 {
namespace {

constexpr absl::string_view kClassNameKey = "_class_name";
constexpr absl::string_view kVideoClass = "AutoencoderKLMiniMaxH3";
constexpr absl::string_view kAudioClass = "AutoencoderKLMiniMaxH3Audio";
constexpr size_t kMaxStages = 16;
constexpr size_t kMaxKernels = 16;

template <typename Config>
struct SizeField {
  absl::string_view key;
  int64_t Config::*member;
  int64_t max;
};

constexpr SizeField<VideoDecoderConfig> kVideoSizes[] = {
    {"latent_channels", &VideoDecoderConfig::latent_channels, 1024},
    {"out_channels", &VideoDecoderConfig::out_channels, 3},
    {"decoder_num_layers", &VideoDecoderConfig::num_layers, 1024},
    {"decoder_num_attention_heads", &VideoDecoderConfig::num_attention_heads, 1024},
    {"decoder_attention_head_dim", &VideoDecoderConfig::attention_head_dim, 1024},
    {"decoder_num_register_tokens", &VideoDecoderConfig::num_register_tokens, 1024},
    {"decoder_ffn_mult", &VideoDecoderConfig::ffn_mult, 64},
    {"clip_length", &VideoDecoderConfig::clip_length, 1024},
    {"token_drop", &VideoDecoderConfig::token_drop, 1024},
};

constexpr SizeField<AudioDecoderConfig> kAudioSizes[] = {
    {"latent_channels", &AudioDecoderConfig::latent_channels, 1024},
    {"latent_dim", &AudioDecoderConfig::latent_dim, 1 << 16},
    {"decoder_dim", &AudioDecoderConfig::decoder_dim, 1 << 16},
    {"sampling_rate", &AudioDecoderConfig::sampling_rate, 1 << 20},
};

struct NumberField {
  absl::string_view key;
  double VideoDecoderConfig::*member;
  double min;
  double max;
};

constexpr NumberField kVideoNumbers[] = {
    {"decoder_rope_theta", &VideoDecoderConfig::rope_theta, 1, 1e12},
    {"decoder_rope_dim_ratio", &VideoDecoderConfig::rope_dim_ratio, 1e-6, 1},
    {"decoder_norm_eps", &VideoDecoderConfig::norm_eps, 1e-30, 1},
};

absl::StatusOr<nlohmann::json> ParseObject(absl::string_view json, absl::string_view source,
                                           absl::string_view class_name) {
  PLUMBLINE_ASSIGN_OR_RETURN(nlohmann::json object,
                             ParseJson(json, source, {.max_bytes = 1 << 16, .max_values = 4096}));
  if (!object.is_object()) {
    return FieldError(source, "not a JSON object", "the keys of a decoder's configuration");
  }
  if (!object.contains(kClassNameKey)) return object;
  PLUMBLINE_ASSIGN_OR_RETURN(const std::string name, GetString(object, source, kClassNameKey));
  if (name == class_name) return object;
  return FieldError(absl::StrCat(source, ": ", kClassNameKey),
                    absl::StrCat("the configuration of a ", Quoted(name)), class_name);
}

// The numbers of a channel each; none for null.
absl::StatusOr<std::vector<double>> ReadStatistics(const nlohmann::json& object,
                                                   absl::string_view source, absl::string_view key,
                                                   int64_t channels, bool may_be_null) {
  const std::string field = absl::StrCat(source, ": ", key);
  const std::string accepted =
      absl::StrCat("an array of ", channels, " finite numbers", may_be_null ? ", or null" : "");
  const auto found = object.find(std::string(key));
  if (found == object.end()) return FieldError(field, "is missing", accepted);
  if (found->is_null() && may_be_null) return std::vector<double>();
  if (!found->is_array() || found->size() != static_cast<size_t>(channels)) {
    return FieldError(field, "is something else", accepted);
  }
  std::vector<double> values;
  for (const nlohmann::json& value : *found) {
    if (!value.is_number() || !std::isfinite(value.get<double>())) {
      return FieldError(field, "holds something else", accepted);
    }
    values.push_back(value.get<double>());
  }
  return values;
}

absl::StatusOr<int64_t> ReadProduct(const nlohmann::json& object, absl::string_view source,
                                    absl::string_view key) {
  PLUMBLINE_ASSIGN_OR_RETURN(const std::vector<int64_t> factors,
                             GetIntArray(object, source, key, 1, 16, 1, 16));
  int64_t product = 1;
  for (int64_t factor : factors) product *= factor;
  return product;
}

absl::Status ValidateVideo(const VideoDecoderConfig& config, absl::string_view source) {
  const auto refuse = [&](absl::string_view key, const std::string& what,
                          absl::string_view accepted) {
    return FieldError(absl::StrCat(source, ": ", key), what, accepted);
  };
  if (config.out_channels != 3) {
    return refuse("out_channels", absl::StrCat(config.out_channels, " is not supported"), "3");
  }
  const double rotating = static_cast<double>(config.attention_head_dim) * config.rope_dim_ratio;
  if (rotating < 6 || std::fmod(rotating, 6) != 0 || rotating > 384) {
    return refuse("decoder_rope_dim_ratio",
                  absl::StrCat("rotates ", rotating, " channels of a head"),
                  "a multiple of 6 channels, 6 to 384");
  }
  // A clip is cut into two parts and the second is kept but for its first frames, so what a clip
  // shares with the next must fit one part.
  const int64_t chunk = (config.clip_length + config.patch_size_t - 1) / config.patch_size_t;
  if (config.token_drop >= chunk) {
    return refuse("token_drop", absl::StrCat(config.token_drop, " is too many"),
                  absl::StrCat("less than the ", chunk, " latent frames of a clip"));
  }
  return absl::OkStatus();
}

absl::Status ValidateAudio(const AudioDecoderConfig& config, absl::string_view source) {
  const auto refuse = [&](absl::string_view key, absl::string_view what,
                          absl::string_view accepted) {
    return FieldError(absl::StrCat(source, ": ", key), what, accepted);
  };
  if (config.kernel_sizes.size() != config.rates.size()) {
    return refuse("decoder_kernel_sizes", "are not as many as decoder_rates", "one for each rate");
  }
  for (size_t i = 0; i < config.rates.size(); ++i) {
    if (config.kernel_sizes[i] < config.rates[i] ||
        (config.kernel_sizes[i] - config.rates[i]) % 2 != 0) {
      return refuse(
          "decoder_kernel_sizes",
          absl::StrCat(config.kernel_sizes[i], " does not go with the rate ", config.rates[i]),
          "the rate, or an even number more");
    }
  }
  if (config.decoder_dim % (int64_t{1} << config.rates.size()) != 0) {
    return refuse("decoder_dim",
                  absl::StrCat(config.decoder_dim, " cannot be halved by each stage"),
                  absl::StrCat("a multiple of ", int64_t{1} << config.rates.size()));
  }
  if (config.resblock_dilation_sizes.size() != config.resblock_kernel_sizes.size()) {
    return refuse("resblock_dilation_sizes", "are not as many as resblock_kernel_sizes",
                  "one array for each kernel");
  }
  for (int64_t kernel : config.resblock_kernel_sizes) {
    if (kernel % 2 == 0) {
      return refuse("resblock_kernel_sizes", absl::StrCat(kernel, " is even"), "odd sizes");
    }
  }
  return absl::OkStatus();
}

}  // namespace

int64_t VideoDecoderConfig::RotaryFrequencies() const {
  return static_cast<int64_t>(static_cast<double>(attention_head_dim) * rope_dim_ratio) / 6;
}

int64_t AudioDecoderConfig::SamplesPerLatent() const {
  int64_t samples = 1;
  for (int64_t rate : rates) samples *= rate;
  return samples;
}

absl::StatusOr<VideoDecoderConfig> ParseVideoDecoderConfig(absl::string_view json,
                                                           absl::string_view source) {
  PLUMBLINE_ASSIGN_OR_RETURN(const nlohmann::json object, ParseObject(json, source, kVideoClass));
  VideoDecoderConfig config;
  for (const SizeField<VideoDecoderConfig>& field : kVideoSizes) {
    PLUMBLINE_ASSIGN_OR_RETURN(config.*field.member,
                               GetInt(object, source, field.key, 1, field.max));
  }
  for (const NumberField& field : kVideoNumbers) {
    PLUMBLINE_ASSIGN_OR_RETURN(config.*field.member,
                               GetDouble(object, source, field.key, field.min, field.max));
  }
  PLUMBLINE_ASSIGN_OR_RETURN(config.patch_size,
                             ReadProduct(object, source, "spatial_downsample_factors"));
  PLUMBLINE_ASSIGN_OR_RETURN(config.patch_size_t,
                             ReadProduct(object, source, "temporal_downsample_factors"));
  PLUMBLINE_ASSIGN_OR_RETURN(config.latents_mean, ReadStatistics(object, source, "latents_mean",
                                                                 config.latent_channels, false));
  PLUMBLINE_ASSIGN_OR_RETURN(config.latents_std, ReadStatistics(object, source, "latents_std",
                                                                config.latent_channels, false));
  PLUMBLINE_RETURN_IF_ERROR(ValidateVideo(config, source));
  return config;
}

absl::StatusOr<AudioDecoderConfig> ParseAudioDecoderConfig(absl::string_view json,
                                                           absl::string_view source) {
  PLUMBLINE_ASSIGN_OR_RETURN(const nlohmann::json object, ParseObject(json, source, kAudioClass));
  AudioDecoderConfig config;
  for (const SizeField<AudioDecoderConfig>& field : kAudioSizes) {
    PLUMBLINE_ASSIGN_OR_RETURN(config.*field.member,
                               GetInt(object, source, field.key, 1, field.max));
  }
  PLUMBLINE_ASSIGN_OR_RETURN(config.rates,
                             GetIntArray(object, source, "decoder_rates", 1, kMaxStages, 1, 64));
  PLUMBLINE_ASSIGN_OR_RETURN(
      config.kernel_sizes,
      GetIntArray(object, source, "decoder_kernel_sizes", 1, kMaxStages, 1, 256));
  PLUMBLINE_ASSIGN_OR_RETURN(
      config.resblock_kernel_sizes,
      GetIntArray(object, source, "resblock_kernel_sizes", 1, kMaxKernels, 1, 255));
  constexpr absl::string_view kDilations = "resblock_dilation_sizes";
  const auto dilations = object.find(std::string(kDilations));
  if (dilations == object.end() || !dilations->is_array() || dilations->size() > kMaxKernels) {
    return FieldError(absl::StrCat(source, ": ", kDilations), "is missing or something else",
                      "an array of arrays of whole numbers");
  }
  for (const nlohmann::json& of_kernel : *dilations) {
    nlohmann::json wrapped;
    wrapped[std::string(kDilations)] = of_kernel;
    PLUMBLINE_ASSIGN_OR_RETURN(const std::vector<int64_t> sizes,
                               GetIntArray(wrapped, source, kDilations, 1, kMaxKernels, 1, 4096));
    config.resblock_dilation_sizes.push_back(sizes);
  }
  PLUMBLINE_ASSIGN_OR_RETURN(config.latents_mean, ReadStatistics(object, source, "latents_mean",
                                                                 config.latent_channels, true));
  PLUMBLINE_ASSIGN_OR_RETURN(config.latents_std, ReadStatistics(object, source, "latents_std",
                                                                config.latent_channels, true));
  if (config.latents_mean.empty() != config.latents_std.empty()) {
    return FieldError(absl::StrCat(source, ": latents_std"),
                      "goes with latents_mean, and only one of them is null",
                      "both, or null for both");
  }
  PLUMBLINE_RETURN_IF_ERROR(ValidateAudio(config, source));
  return config;
}

std::string CanonicalConfigJson(const VideoDecoderConfig& config) {
  nlohmann::json object;  // Sorts its keys.
  for (const auto& field : kVideoSizes) object[std::string(field.key)] = config.*field.member;
  for (const auto& field : kVideoNumbers) object[std::string(field.key)] = config.*field.member;
  object["patch_size"] = config.patch_size;
  object["patch_size_t"] = config.patch_size_t;
  object["latents_mean"] = config.latents_mean;
  object["latents_std"] = config.latents_std;
  return object.dump();
}

std::string CanonicalConfigJson(const AudioDecoderConfig& config) {
  nlohmann::json object;  // Sorts its keys.
  for (const auto& field : kAudioSizes) object[std::string(field.key)] = config.*field.member;
  object["decoder_rates"] = config.rates;
  object["decoder_kernel_sizes"] = config.kernel_sizes;
  object["resblock_kernel_sizes"] = config.resblock_kernel_sizes;
  object["resblock_dilation_sizes"] = config.resblock_dilation_sizes;
  object["latents_mean"] = config.latents_mean;
  object["latents_std"] = config.latents_std;
  return object.dump();
}

VideoDecoderConfig ReleasedVideoDecoder() {
  VideoDecoderConfig config;
  config.latent_channels = 24;
  config.out_channels = 3;
  config.num_layers = 36;
  config.num_attention_heads = 32;
  config.attention_head_dim = 64;
  config.num_register_tokens = 4;
  config.ffn_mult = 4;
  config.rope_theta = 100;
  config.rope_dim_ratio = 0.75;
  config.norm_eps = 1e-5;
  config.clip_length = 17;
  config.token_drop = 3;
  config.patch_size = 16;
  config.patch_size_t = 4;
  config.latents_mean.assign(24, 0);
  config.latents_std.assign(24, 1);
  return config;
}

VideoDecoderConfig TinyVideoDecoder() {
  VideoDecoderConfig config = ReleasedVideoDecoder();
  config.num_layers = 2;
  config.num_attention_heads = 1;
  return config;
}

AudioDecoderConfig ReleasedAudioDecoder() {
  AudioDecoderConfig config;
  config.latent_channels = 32;
  config.latent_dim = 2048;
  config.decoder_dim = 1024;
  config.rates = {5, 5, 2, 2, 2, 2, 2};
  config.kernel_sizes = {9, 9, 4, 4, 4, 4, 4};
  config.resblock_kernel_sizes = {3, 7, 11};
  config.resblock_dilation_sizes.assign(3, {1, 3, 5});
  config.sampling_rate = 32000;
  return config;
}

AudioDecoderConfig TinyAudioDecoder() {
  AudioDecoderConfig config = ReleasedAudioDecoder();
  config.latent_dim = 64;
  config.decoder_dim = 128;
  return config;
}

}  // namespace plumbline::h3
