#include "kernels/ops.h"

namespace plumbline {

absl::string_view OpName(OpKind op) {
  switch (op) {
    case OpKind::kTimeProjection:
      return "TimeProjection";
    case OpKind::kTimeEmbedder:
      return "TimeEmbedder";
    case OpKind::kLinear:
      return "Linear";
    case OpKind::kAdalnProjection:
      return "AdalnProjection";
    case OpKind::kRmsNorm:
      return "RmsNorm";
    case OpKind::kModulatedRmsNorm:
      return "ModulatedRmsNorm";
    case OpKind::kRope:
      return "Rope";
    case OpKind::kAttention:
      return "Attention";
    case OpKind::kGatedResidual:
      return "GatedResidual";
    case OpKind::kResidual:
      return "Residual";
    case OpKind::kSwiGlu:
      return "SwiGlu";
    case OpKind::kScatterRows:
      return "ScatterRows";
    case OpKind::kGatherRows:
      return "GatherRows";
    case OpKind::kCast:
      return "Cast";
    case OpKind::kGradSum:
      return "GradSum";
  }
  return "unknown";
}

}  // namespace plumbline
