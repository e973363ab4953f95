#include "kernels/cuda/attention_backward.cuh"
#include "kernels/provider/cuda/tiled_attention.h"

namespace plumbline::provider_cuda {

using cuda::FusedAttentionBackward;
using cuda::ScoreGradient;

size_t TiledAttentionBackwardBytes(const BackwardCall& call) {
  return cuda::FusedAttentionBackwardBytes(call);
}

absl::Status TiledAttentionBackward(cudaStream_t stream, TiledKernel kernel,
                                    const BackwardCall& call, float* workspace) {
  switch (kernel) {
    case TiledKernel::kDefault:
      return FusedAttentionBackward<ScoreGradient::kScaled>(stream, call, workspace);
    case TiledKernel::kFlash:
      return FusedAttentionBackward<ScoreGradient::kUnscaled>(stream, call, workspace);
    case TiledKernel::kEfficient:
      return FusedAttentionBackward<ScoreGradient::kFromRoundedWeights>(stream, call, workspace);
  }
  return absl::InternalError("provider Attention: unknown kernel");
}

}  // namespace plumbline::provider_cuda
