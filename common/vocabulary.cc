#include "common/vocabulary.h"

#include <algorithm>
#include <vector>

#include "absl/strings/ascii.h"
#include "absl/strings/str_join.h"

namespace plumbline {
namespace {

constexpr absl::string_view kBlockReplay = "block-replay";
constexpr absl::string_view kFullModel = "full-model";
constexpr absl::string_view kGeneration = "generation";

constexpr FaultInfo kFaults[] = {
    {kBlockReplay, "swiglu-halves", "swiglu", "", "The two halves that SwiGLU reads are swapped."},
    {kBlockReplay, "qk-heads", "q_proj", "",
     "The rows of the query and key weights are permuted by whole heads."},
    {kBlockReplay, "native-qkv", "q_proj", "",
     "The fused QKV weight is cut into thirds with its heads left interleaved."},
    {kBlockReplay, "rope-128", "rope_q", "",
     "Every channel of a head is rotated instead of the first three quarters."},
    {kBlockReplay, "last-keys", "attention", "",
     "Attention drops the last eighth of the keys, at least one."},
    {kBlockReplay, "audio-as-video", "norm1", "", "Audio rows carry the tag of video rows."},
    {kBlockReplay, "adaln-silu-rounded", "adaln_projection", "",
     "The timestep embedding is rounded to bfloat16 before its SiLU instead of after it."},
    {kBlockReplay, "norm-float32", "norm1", "",
     "The modulated norms keep float32 where bfloat16 rounds."},
    {kBlockReplay, "zero-gradient", "leaf.attn.to_q.weight", "",
     "The gradient of the query weight is zero."},
    {kBlockReplay, "unordered-gradient", "adaln_projection.grad", "repeat",
     "The gather backward adds in bfloat16, starting one row later with every execution."},
    {kBlockReplay, "split-by-rows", "q_proj", "batch",
     "Matrix products split their reduction by the number of rows and round the parts."},
    {kFullModel, "swiglu-halves", "nodes.block.0", "",
     "The two halves that SwiGLU reads in block 0 are swapped."},
    {kFullModel, "qk-heads", "nodes.block.0", "",
     "The rows of the query and key weights of block 0 are permuted by whole heads."},
    {kFullModel, "native-qkv", "nodes.block.0", "",
     "The fused QKV weight of block 0 is cut into thirds with its heads left interleaved."},
    {kFullModel, "rope-128", "nodes.block.0", "",
     "Every channel of a head is rotated in block 0 instead of the first three quarters."},
    {kFullModel, "last-keys", "nodes.block.0", "",
     "Attention in block 0 drops the last eighth of the keys, at least one."},
    {kFullModel, "audio-as-video", "nodes.block.0", "",
     "Audio rows carry the tag of video rows, in every block."},
    {kFullModel, "zero-gradient", "parameter.transformer_blocks.0.attn.to_q.weight", "zero",
     "The gradient of the query weight of block 0 is zero."},
    {kGeneration, "step-other-seed", "step.0/input.hidden_states", "identity",
     "The store holds another seed's step in the place of the run's first."},
    {kGeneration, "step-bit-flip", "step.0/velocity.video", "identity",
     "A bit of the run's first step is flipped where it is stored."},
    {kGeneration, "text-ignored", "text", "sensitivity",
     "The model is given zeros in the place of the prompt's rows."},
};

constexpr FaultInfo kSweepFaults[] = {
    {kBlockReplay, "long-video", "rope_q", "",
     "At 56 latent frames or more the times of the video's rows are kept in bfloat16 "
     "(--layouts=sweep).",
     56},
};

// Frames 124, 141, ..., 345: latent frames 5 n + 2, audio latents frames / 24 * 40 to the nearest.
constexpr absl::string_view kSweep[] = {
    "97,37,2,2,207,none",  "31,42,2,4,235,first", "64,47,4,2,263,last", "7,52,4,4,292,first+last",
    "101,57,2,8,320,none", "45,62,8,2,348,first", "1,67,4,6,377,last",  "150,72,6,4,405,first+last",
    "88,77,2,2,433,none",  "23,82,4,2,462,first", "61,87,2,6,490,last", "5,92,6,2,518,first+last",
    "41,97,2,4,547,none",  "77,102,2,2,575,first"};

constexpr NamedLayout kLayouts[] = {
    {"tiny", "104,2,12,16,8,first"},
    {"small", "291,7,14,20,37,first"},
    {"medium", "678,12,24,28,65,first+last"},
    {"released", "194,37,48,84,207,first"},
};

constexpr absl::string_view kGroups[] = {"gemms",     "norms",   "qk_norm",
                                         "residuals", "interim", "all"};

constexpr absl::string_view kBlockNodes[] = {
    "adaln_projection", "norm1",         "q_proj", "k_proj",      "v_proj",
    "q_norm",           "k_norm",        "rope_q", "rope_k",      "attention",
    "o_proj",           "residual_attn", "norm2",  "ffn_gate_up", "swiglu",
    "ffn_down",         "residual_mlp"};

constexpr absl::string_view kBoundaryNodes[] = {
    "proj_in",   "audio_proj_in",  "context_embedder", "token_refiner", "scatter",
    "time_proj", "time_embedder",  "norm_out/linear",  "norm_out",      "norm_out/float32",
    "proj_out",  "audio_proj_out", "output.video",     "output.audio"};

constexpr absl::string_view kImplementations[] = {"golden",
                                                  "provider/default",
                                                  "provider/sdpa-flash",
                                                  "provider/sdpa-efficient",
                                                  "provider/sdpa-math",
                                                  "provider/blas-cublaslt",
                                                  "candidate"};

constexpr absl::string_view kProviderVariants[] = {"default", "sdpa-flash", "sdpa-efficient",
                                                   "sdpa-math", "blas-cublaslt"};

}  // namespace

absl::Span<const FaultInfo> Faults() { return kFaults; }
absl::Span<const FaultInfo> SweepFaults() { return kSweepFaults; }

const FaultInfo* FindFault(absl::string_view job, absl::string_view name) {
  for (absl::Span<const FaultInfo> faults : {Faults(), SweepFaults()}) {
    for (const FaultInfo& fault : faults) {
      if (fault.job == job && fault.name == name) return &fault;
    }
  }
  return nullptr;
}

std::string FaultNames(absl::string_view job) {
  std::vector<absl::string_view> names;
  for (absl::Span<const FaultInfo> faults : {Faults(), SweepFaults()}) {
    for (const FaultInfo& fault : faults) {
      if (fault.job == job) names.push_back(fault.name);
    }
  }
  return absl::StrJoin(names, ", ");
}

absl::Span<const NamedLayout> NamedLayouts() { return kLayouts; }
absl::Span<const absl::string_view> SweepLayouts() { return kSweep; }
absl::Span<const absl::string_view> NodeGroups() { return kGroups; }
absl::Span<const absl::string_view> BlockNodes() { return kBlockNodes; }
absl::Span<const absl::string_view> BoundaryNodes() { return kBoundaryNodes; }
absl::Span<const absl::string_view> Implementations() { return kImplementations; }
absl::Span<const absl::string_view> ProviderVariants() { return kProviderVariants; }

bool IsPluginName(absl::string_view name) {
  constexpr size_t kMaxBytes = 63;
  return !name.empty() && name.size() <= kMaxBytes &&
         std::all_of(name.begin(), name.end(), [](char c) {
           return absl::ascii_isalnum(static_cast<unsigned char>(c)) || c == '.' || c == '_' ||
                  c == '-';
         });
}

}  // namespace plumbline
