#include "worker/h3/stored_tensors.h"

#include <array>
#include <utility>

#include "absl/container/flat_hash_map.h"
#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/strip.h"

namespace plumbline::h3 {
namespace {

using Renaming = std::pair<absl::string_view, absl::string_view>;  // Released, native.

constexpr Renaming kPrefixes[] = {
    {"transformer_blocks.", "blocks."},
    {"token_refiner.refiner_blocks.", "token_refiner.blocks."},
    {"proj_in.", "video_patch_proj."},
    {"audio_proj_in.", "audio_patch_proj."},
    {"context_embedder.", "condition_proj."},
    {"time_embedder.linear_1.", "time_embedder.proj_in."},
    {"time_embedder.linear_2.", "time_embedder.proj_out."},
    {"norm_out.norm.", "final_layer.norm."},
    {"norm_out.linear.", "final_layer.adaln_proj.linear."},
    {"proj_out.", "final_layer.video_out."},
    {"audio_proj_out.", "final_layer.audio_out."},
};

constexpr absl::string_view kGateUp = ".ff.net.0.proj.weight";
constexpr absl::string_view kFused = ".attn.qkv_proj.weight";
constexpr absl::string_view kFrequencies = "rope.inv_freq";
// In the order in which the fused tensor has them, head by head.
constexpr std::array<absl::string_view, 3> kProjections = {".attn.to_q.weight", ".attn.to_k.weight",
                                                           ".attn.to_v.weight"};

constexpr Renaming kSuffixes[] = {
    {kProjections[0], kFused},
    {kProjections[1], kFused},
    {kProjections[2], kFused},
    {".attn.norm_q.weight", ".attn.q_norm.weight"},
    {".attn.norm_k.weight", ".attn.k_norm.weight"},
    {".attn.to_out.0.weight", ".attn.out_proj.weight"},
    {kGateUp, ".mlp.fc1.weight"},
    {".ff.net.2.weight", ".mlp.fc2.weight"},
};

int64_t RowsOf(const ParameterSpec& parameter) {
  return parameter.shape.size() == 1 ? 1 : parameter.shape[0];
}

StoredTensor Plain(const ParameterSpec& parameter, size_t index, std::string name) {
  return {std::move(name), parameter.dtype, parameter.shape, {{index, 0, RowsOf(parameter)}}};
}

// [gate; value] as it is stored, where the parameter has [value; gate].
StoredTensor SwappedHalves(const ParameterSpec& parameter, size_t index, std::string name) {
  const int64_t half = RowsOf(parameter) / 2;
  return {
      std::move(name), parameter.dtype, parameter.shape, {{index, half, half}, {index, 0, half}}};
}

// Query, key and value of one block, by their indices.
StoredTensor Fused(const TransformerConfig& config, const std::vector<ParameterSpec>& parameters,
                   const std::array<size_t, 3>& projections, std::string name) {
  const ParameterSpec& query = parameters[projections[0]];
  StoredTensor tensor{std::move(name), query.dtype, {3 * query.shape[0], query.shape[1]}, {}};
  for (int64_t head = 0; head < config.num_attention_heads; ++head) {
    for (size_t projection : projections) {
      tensor.runs.push_back(
          {projection, head * config.attention_head_dim, config.attention_head_dim});
    }
  }
  return tensor;
}

std::vector<StoredTensor> NativeTensors(const TransformerConfig& config,
                                        const std::vector<ParameterSpec>& parameters) {
  absl::flat_hash_map<absl::string_view, size_t> index_by_name;
  for (size_t i = 0; i < parameters.size(); ++i) index_by_name[parameters[i].name] = i;
  std::vector<StoredTensor> tensors;
  for (size_t i = 0; i < parameters.size(); ++i) {
    absl::string_view block = parameters[i].name;
    std::string name = NativeName(block);
    if (absl::EndsWith(block, kProjections[1]) || absl::EndsWith(block, kProjections[2])) continue;
    if (absl::ConsumeSuffix(&block, kProjections[0])) {
      const std::array<size_t, 3> projections = {
          i, index_by_name.at(absl::StrCat(block, kProjections[1])),
          index_by_name.at(absl::StrCat(block, kProjections[2]))};
      tensors.push_back(Fused(config, parameters, projections, std::move(name)));
    } else if (absl::EndsWith(block, kGateUp)) {
      tensors.push_back(SwappedHalves(parameters[i], i, std::move(name)));
    } else {
      tensors.push_back(Plain(parameters[i], i, std::move(name)));
    }
  }
  tensors.push_back({std::string(kFrequencies), DType::kF32, {config.rope_freq_dim}, {}});
  return tensors;
}

}  // namespace

std::vector<StoredTensor> StoredTensors(CheckpointLayout layout, const TransformerConfig& config,
                                        const std::vector<ParameterSpec>& parameters) {
  if (layout == CheckpointLayout::kNative) return NativeTensors(config, parameters);
  std::vector<StoredTensor> tensors;
  for (size_t i = 0; i < parameters.size(); ++i) {
    tensors.push_back(Plain(parameters[i], i, parameters[i].name));
  }
  return tensors;
}

CheckpointLayout LayoutOfNames(const std::vector<std::string>& names) {
  int64_t native = 0, released = 0;
  for (const std::string& name : names) {
    for (const auto& [released_prefix, native_prefix] : kPrefixes) {
      if (absl::StartsWith(name, released_prefix)) ++released;
      if (absl::StartsWith(name, native_prefix)) ++native;
    }
  }
  return native > released ? CheckpointLayout::kNative : CheckpointLayout::kReleased;
}

std::string NativeName(absl::string_view parameter) {
  std::string prefix;
  for (const auto& [released, native] : kPrefixes) {
    if (!absl::ConsumePrefix(&parameter, released)) continue;
    prefix = std::string(native);
    break;
  }
  for (const auto& [released, native] : kSuffixes) {
    // With the dot that ends a block's number.
    if (absl::ConsumeSuffix(&parameter, released)) {
      return absl::StrCat(prefix, parameter, native);
    }
  }
  return absl::StrCat(prefix, parameter);
}

}  // namespace plumbline::h3
