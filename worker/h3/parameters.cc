#include "worker/h3/parameters.h"

#include "absl/strings/str_cat.h"
#include "absl/types/span.h"

namespace plumbline::h3 {
namespace {

using Shape = std::vector<int64_t>;

struct BlockParameter {
  absl::string_view name;
  Shape (*shape)(const TransformerConfig& config);
};

Shape HiddenVector(const TransformerConfig& config) { return {config.hidden_size}; }
Shape HeadVector(const TransformerConfig& config) { return {config.attention_head_dim}; }
Shape HiddenToAttention(const TransformerConfig& config) {
  return {config.AttentionWidth(), config.hidden_size};
}
Shape AttentionToHidden(const TransformerConfig& config) {
  return {config.hidden_size, config.AttentionWidth()};
}
Shape GateUp(const TransformerConfig& config) { return {2 * config.ffn_dim, config.hidden_size}; }
Shape Down(const TransformerConfig& config) { return {config.hidden_size, config.ffn_dim}; }
// Six vectors of the hidden size for each of the three modalities.
Shape AdalnMatrix(const TransformerConfig& config) {
  return {18 * config.hidden_size, config.time_embed_dim};
}
Shape AdalnVector(const TransformerConfig& config) { return {18 * config.hidden_size}; }

constexpr BlockParameter kRefinerParameters[] = {
    {"norm1.weight", HiddenVector},
    {"attn.to_q.weight", HiddenToAttention},
    {"attn.to_k.weight", HiddenToAttention},
    {"attn.to_v.weight", HiddenToAttention},
    {"attn.norm_q.weight", HeadVector},
    {"attn.norm_k.weight", HeadVector},
    {"attn.to_out.0.weight", AttentionToHidden},
    {"norm2.weight", HiddenVector},
    {"ff.net.0.proj.weight", GateUp},
    {"ff.net.2.weight", Down},
};

constexpr BlockParameter kAdalnParameters[] = {
    {"adaln_proj.linear.weight", AdalnMatrix},
    {"adaln_proj.linear.bias", AdalnVector},
};

void Append(const TransformerConfig& config, absl::string_view prefix,
            absl::Span<const BlockParameter> block, std::vector<ParameterSpec>* parameters) {
  for (const BlockParameter& parameter : block) {
    parameters->push_back(
        {absl::StrCat(prefix, parameter.name), DType::kBF16, parameter.shape(config)});
  }
}

void AppendLinear(absl::string_view name, DType dtype, int64_t outputs, int64_t inputs,
                  std::vector<ParameterSpec>* parameters) {
  parameters->push_back({absl::StrCat(name, ".weight"), dtype, {outputs, inputs}});
  parameters->push_back({absl::StrCat(name, ".bias"), dtype, {outputs}});
}

}  // namespace

int64_t ParameterSpec::NumElements() const {
  int64_t count = 1;
  for (int64_t extent : shape) count *= extent;
  return count;
}

std::string BlockPrefix(int64_t block) { return absl::StrCat("transformer_blocks.", block, "."); }

std::string RefinerBlockPrefix(int64_t block) {
  return absl::StrCat("token_refiner.refiner_blocks.", block, ".");
}

std::vector<ParameterSpec> BlockParameters(const TransformerConfig& config,
                                           absl::string_view prefix) {
  std::vector<ParameterSpec> parameters;
  Append(config, prefix, kRefinerParameters, &parameters);
  Append(config, prefix, kAdalnParameters, &parameters);
  return parameters;
}

std::vector<ParameterSpec> RefinerBlockParameters(const TransformerConfig& config,
                                                  absl::string_view prefix) {
  std::vector<ParameterSpec> parameters;
  Append(config, prefix, kRefinerParameters, &parameters);
  return parameters;
}

std::vector<ParameterSpec> TransformerParameters(const TransformerConfig& config) {
  const int64_t hidden = config.hidden_size;
  std::vector<ParameterSpec> list;
  AppendLinear("proj_in", DType::kF32, hidden, config.VideoRowWidth(), &list);
  AppendLinear("audio_proj_in", DType::kF32, hidden, config.audio_in_channels, &list);
  AppendLinear("context_embedder", DType::kBF16, hidden, config.text_dim, &list);
  AppendLinear("time_embedder.linear_1", DType::kF32, config.time_embed_hidden_dim, config.freq_dim,
               &list);
  AppendLinear("time_embedder.linear_2", DType::kF32, config.time_embed_dim,
               config.time_embed_hidden_dim, &list);
  for (int64_t i = 0; i < config.num_refiner_layers; ++i) {
    Append(config, RefinerBlockPrefix(i), kRefinerParameters, &list);
  }
  list.push_back({"token_refiner.final_norm.weight", DType::kBF16, {hidden}});
  for (int64_t i = 0; i < config.num_layers; ++i) {
    Append(config, BlockPrefix(i), kRefinerParameters, &list);
    Append(config, BlockPrefix(i), kAdalnParameters, &list);
  }
  list.push_back({"norm_out.norm.weight", DType::kBF16, {hidden}});
  AppendLinear("norm_out.linear", DType::kBF16, 2 * hidden, config.time_embed_dim, &list);
  AppendLinear("proj_out", DType::kF32, config.VideoRowWidth(), hidden, &list);
  AppendLinear("audio_proj_out", DType::kF32, config.audio_in_channels, hidden, &list);
  return list;
}

int64_t TotalParameterBytes(const std::vector<ParameterSpec>& parameters) {
  int64_t bytes = 0;
  for (const ParameterSpec& parameter : parameters) bytes += parameter.NumBytes();
  return bytes;
}

}  // namespace plumbline::h3
