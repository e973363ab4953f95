#include "kernels/plugin/nodes.h"

#include <vector>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"

namespace plumbline::plugin {
namespace {

constexpr PluginNode kNodes[] = {
    {"adaln_projection", "adaln_projection", OpKind::kAdalnProjection},
    {"norm1", "norm1", OpKind::kModulatedRmsNorm},
    {"q_proj", "q_proj", OpKind::kLinear},
    {"k_proj", "k_proj", OpKind::kLinear},
    {"v_proj", "v_proj", OpKind::kLinear},
    {"q_norm", "q_norm", OpKind::kRmsNorm},
    {"k_norm", "k_norm", OpKind::kRmsNorm},
    {"rope_q", "rope_q", OpKind::kRope},
    {"rope_k", "rope_k", OpKind::kRope},
    {"attention", "attention", OpKind::kAttention},
    {"o_proj", "o_proj", OpKind::kLinear},
    {"residual_attn", "residual_attn", OpKind::kGatedResidual},
    {"norm2", "norm2", OpKind::kModulatedRmsNorm},
    {"ffn_gate_up", "ffn_gate_up", OpKind::kLinear},
    {"swiglu", "swiglu", OpKind::kSwiGlu},
    {"ffn_down", "ffn_down", OpKind::kLinear},
    {"residual_mlp", "residual_mlp", OpKind::kGatedResidual},
    {"refiner/norm1", "norm1", OpKind::kRmsNorm},
    {"refiner/residual_attn", "residual_attn", OpKind::kResidual},
    {"refiner/norm2", "norm2", OpKind::kRmsNorm},
    {"refiner/residual_mlp", "residual_mlp", OpKind::kResidual},
    {"proj_in", "proj_in", OpKind::kLinear},
    {"audio_proj_in", "audio_proj_in", OpKind::kLinear},
    {"context_embedder", "context_embedder", OpKind::kLinear},
    {"token_refiner", "token_refiner", OpKind::kRmsNorm},
    {"norm_out", "norm_out", OpKind::kModulatedRmsNorm},
    {"proj_out", "proj_out", OpKind::kLinear},
    {"audio_proj_out", "audio_proj_out", OpKind::kLinear},
};

std::vector<absl::string_view> InputNames(OpKind op) {
  switch (op) {
    case OpKind::kAdalnProjection:
      return {"temb"};
    case OpKind::kModulatedRmsNorm:
      return {"x", "scale", "shift", "index"};
    case OpKind::kRope:
      return {"x", "position_ids"};
    case OpKind::kAttention:
      return {"q", "k", "v"};
    case OpKind::kGatedResidual:
      return {"x", "branch", "gate", "index"};
    case OpKind::kResidual:
      return {"x", "branch"};
    case OpKind::kSwiGlu:
      return {"gate_up"};
    default:
      return {"x"};
  }
}

}  // namespace

absl::Span<const PluginNode> PluginNodes() { return kNodes; }

const PluginNode* FindPluginNode(absl::string_view name) {
  for (const PluginNode& node : kNodes) {
    if (node.name == name) return &node;
  }
  return nullptr;
}

std::string PluginNodeNames() {
  return absl::StrJoin(kNodes, ", ", [](std::string* out, const PluginNode& node) {
    absl::StrAppend(out, node.name);
  });
}

std::string InputName(OpKind op, size_t index) {
  const std::vector<absl::string_view> names = InputNames(op);
  return index < names.size() ? std::string(names[index]) : absl::StrCat("input ", index);
}

std::string ParameterName(OpKind op, size_t index) {
  return index == 0 ? "weight" : index == 1 ? "bias" : absl::StrCat("parameter ", index);
}

}  // namespace plumbline::plugin
