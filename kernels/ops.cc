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
    case OpKind::kDecoderLinear:
      return "DecoderLinear";
    case OpKind::kDecoderRmsNorm:
      return "DecoderRmsNorm";
    case OpKind::kDecoderHeadNorm:
      return "DecoderHeadNorm";
    case OpKind::kDecoderLayerNorm:
      return "DecoderLayerNorm";
    case OpKind::kDecoderRope:
      return "DecoderRope";
    case OpKind::kDecoderAttention:
      return "DecoderAttention";
    case OpKind::kDecoderSwiGlu:
      return "DecoderSwiGlu";
    case OpKind::kDecoderResidual:
      return "DecoderResidual";
    case OpKind::kAppendTokens:
      return "AppendTokens";
    case OpKind::kConv1d:
      return "Conv1d";
    case OpKind::kConvTranspose1d:
      return "ConvTranspose1d";
    case OpKind::kSnakeBeta:
      return "SnakeBeta";
    case OpKind::kMean:
      return "Mean";
  }
  return "unknown";
}

}  // namespace plumbline
