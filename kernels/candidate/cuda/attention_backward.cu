#include "kernels/candidate/cuda/attention.h"
#include "kernels/cuda/attention_backward.cuh"

namespace plumbline::candidate_cuda {

size_t AttentionBackwardBytes(const BackwardCall& call) {
  return cuda::FusedAttentionBackwardBytes(call);
}

absl::Status AttentionBackward(cudaStream_t stream, const BackwardCall& call, float* workspace) {
  return cuda::FusedAttentionBackward<cuda::ScoreGradient::kScaled>(stream, call, workspace);
}

}  // namespace plumbline::candidate_cuda
