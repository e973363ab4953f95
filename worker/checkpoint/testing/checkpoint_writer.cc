#include "worker/checkpoint/testing/checkpoint_writer.h"

#include <filesystem>
#include <map>
#include <nlohmann/json.hpp>
#include <utility>

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "absl/strings/str_replace.h"
#include "absl/strings/strip.h"
#include "common/files.h"
#include "common/safetensors.h"

namespace plumbline::h3::testing {
namespace {

using nlohmann::json;

constexpr char kBundled[] = "tests/golden/checkpoint/transformer/";

std::string ReadOrDie(const std::string& path) {
  absl::StatusOr<std::string> text = ReadFile(path, 64 << 20);
  if (!text.ok()) abort();
  return *std::move(text);
}

std::string PlainNativeName(const std::string& released) {
  return absl::StrReplaceAll(released, {{"token_refiner.refiner_blocks.", "token_refiner.blocks."},
                                        {"transformer_blocks.", "blocks."},
                                        {"audio_proj_in.", "audio_patch_proj."},
                                        {"audio_proj_out.", "final_layer.audio_out."},
                                        {"proj_in.", "video_patch_proj."},
                                        {"context_embedder.", "condition_proj."},
                                        {"time_embedder.linear_1.", "time_embedder.proj_in."},
                                        {"time_embedder.linear_2.", "time_embedder.proj_out."},
                                        {"norm_out.norm.", "final_layer.norm."},
                                        {"norm_out.linear.", "final_layer.adaln_proj.linear."},
                                        {"proj_out.", "final_layer.video_out."},
                                        {"attn.norm_q.", "attn.q_norm."},
                                        {"attn.norm_k.", "attn.k_norm."},
                                        {"attn.to_out.0.", "attn.out_proj."},
                                        {"ff.net.0.proj.", "mlp.fc1."},
                                        {"ff.net.2.", "mlp.fc2."}});
}

std::string Swapped(const std::string& bytes) {
  return bytes.substr(bytes.size() / 2) + bytes.substr(0, bytes.size() / 2);
}

// Head by head: q, k, v.
std::string Fused(const std::string& q, const std::string& k, const std::string& v) {
  const size_t head = q.size() / kBundledHeads;
  std::string fused;
  for (int i = 0; i < kBundledHeads; ++i) {
    for (const std::string* part : {&q, &k, &v}) fused += part->substr(i * head, head);
  }
  return fused;
}

// Prefixes "PLACE.N." of all blocks.
std::vector<std::string> Blocks(const OwnedTensors& tensors) {
  std::vector<std::string> blocks;
  for (const OwnedTensor& tensor : tensors) {
    const size_t at = tensor.spec.name.find("attn.to_q.weight");
    if (at != std::string::npos) blocks.push_back(tensor.spec.name.substr(0, at));
  }
  return blocks;
}

}  // namespace

OwnedTensors BundledTensors() {
  const absl::StatusOr<SafetensorsFile> file = SafetensorsFile::Open(
      absl::StrCat(kBundled, "diffusion_pytorch_model.safetensors.index.json"));
  if (!file.ok()) abort();
  OwnedTensors tensors;
  for (const TensorInfo& tensor : file->tensors()) {
    const absl::Span<const uint8_t> bytes = file->Bytes(tensor);
    tensors.push_back(
        {{tensor.name, tensor.dtype, tensor.shape}, std::string(bytes.begin(), bytes.end())});
  }
  return tensors;
}

std::string BundledConfig() { return ReadOrDie(absl::StrCat(kBundled, "config.json")); }

std::string NativeConfig() {
  const json released = json::parse(BundledConfig());
  json native = {{"_class_name", "MiniMaxH3DiT"}, {"adaln_out_features", 2304}};
  const std::map<std::string, std::string> names = {
      {"num_refiner_layers", "token_refiner_num_layers"},
      {"ffn_dim", "ffn_hidden_size"},
      {"in_channels", "latents_dim"},
      {"audio_in_channels", "audio_latents_dim"},
      {"freq_dim", "timestep_input_dim"},
      {"time_embed_hidden_dim", "time_embed_hidden_size"},
      {"rope_freq_dim", "rope_inv_freq_len"}};
  for (const auto& [key, value] : released.items()) {
    if (key[0] == '_' || key == "rope_theta") continue;
    const auto renamed = names.find(key);
    native[renamed == names.end() ? key : renamed->second] = value;
  }
  return native.dump();
}

OwnedTensor* FindTensor(absl::string_view name, OwnedTensors* tensors) {
  for (OwnedTensor& tensor : *tensors) {
    if (tensor.spec.name == name) return &tensor;
  }
  abort();
}

OwnedTensors ToNative(const OwnedTensors& released) {
  OwnedTensors copy = released;
  OwnedTensors native;
  for (const OwnedTensor& tensor : released) {
    const std::string& name = tensor.spec.name;
    if (absl::EndsWith(name, "attn.to_k.weight") || absl::EndsWith(name, "attn.to_v.weight")) {
      continue;
    }
    OwnedTensor result = tensor;
    result.spec.name = PlainNativeName(name);
    if (absl::EndsWith(name, "attn.to_q.weight")) {
      const std::string block(absl::StripSuffix(name, "q.weight"));
      result.spec.name = absl::StrReplaceAll(result.spec.name, {{"to_q", "qkv_proj"}});
      result.spec.shape[0] *= 3;
      result.bytes = Fused(tensor.bytes, FindTensor(block + "k.weight", &copy)->bytes,
                           FindTensor(block + "v.weight", &copy)->bytes);
    } else if (absl::EndsWith(name, "ff.net.0.proj.weight")) {
      result.bytes = Swapped(tensor.bytes);
    }
    native.push_back(std::move(result));
  }
  native.push_back({{"rope.inv_freq", DType::kF32, {16}}, std::string(64, '\x3c')});
  return native;
}

void LeaveQkvInterleaved(OwnedTensors* tensors) {
  for (const std::string& block : Blocks(*tensors)) {
    OwnedTensor* const q = FindTensor(block + "attn.to_q.weight", tensors);
    OwnedTensor* const k = FindTensor(block + "attn.to_k.weight", tensors);
    OwnedTensor* const v = FindTensor(block + "attn.to_v.weight", tensors);
    const std::string fused = Fused(q->bytes, k->bytes, v->bytes);
    const size_t third = fused.size() / 3;
    q->bytes = fused.substr(0, third);
    k->bytes = fused.substr(third, third);
    v->bytes = fused.substr(2 * third);
  }
}

void SwapFfnHalves(OwnedTensors* tensors) {
  for (OwnedTensor& tensor : *tensors) {
    if (absl::EndsWith(tensor.spec.name, "ff.net.0.proj.weight")) {
      tensor.bytes = Swapped(tensor.bytes);
    }
  }
}

void WriteCheckpoint(const std::string& folder, const OwnedTensors& tensors, int shards,
                     absl::string_view stem, const std::string& config, bool index) {
  const std::string transformer = folder + "/transformer";
  std::filesystem::create_directories(transformer);
  json weight_map = json::object();
  for (int shard = 0; shard < shards; ++shard) {
    const std::string name =
        shards == 1 ? absl::StrCat(stem, ".safetensors")
                    : absl::StrFormat("%s-%05d-of-%05d.safetensors", stem, shard + 1, shards);
    std::vector<TensorView> views;
    for (size_t i = shard; i < tensors.size(); i += shards) {
      const std::string& bytes = tensors[i].bytes;
      views.push_back(
          {tensors[i].spec, {reinterpret_cast<const uint8_t*>(bytes.data()), bytes.size()}});
      weight_map[tensors[i].spec.name] = name;
    }
    if (!WriteSafetensors(absl::StrCat(transformer, "/", name), views).ok()) abort();
  }
  if (shards > 1 && index) {
    const json contents = {{"metadata", json::object()}, {"weight_map", weight_map}};
    if (!WriteFileAtomically(absl::StrCat(transformer, "/", stem, ".safetensors.index.json"),
                             contents.dump())
             .ok()) {
      abort();
    }
  }
  if (!WriteFileAtomically(transformer + "/config.json", config).ok()) abort();
}

}  // namespace plumbline::h3::testing
